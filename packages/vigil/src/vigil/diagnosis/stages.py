"""Says in which stage an attempt was when a line came: the same words mean another thing while graphs are captured."""

from bisect import bisect_left, bisect_right

from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.text import LogText

SERVING = "serving"
DRAFT = "loading_draft"
_LOADING = "loading"
_BEGINS = ("Load weight begin",)
"""SGLang prints it once for the target and once more for the draft."""


class Stages:
    """The stages of one attempt, by line. Invariant: what has served goes on serving."""

    def __init__(self, log: LogText) -> None:
        turns = sorted(
            {(index, stage.name) for stage in how_to_read().stage for text in stage.texts for index in log.find(text)}
        )
        self._lines: list[int] = []
        self._names: list[str] = []
        loads = [index for text in _BEGINS for index in log.find(text)]
        ranks = {log.read(index).rank for index in loads}
        second = sorted(loads)[len(ranks)] if len(loads) > len(ranks) else len(log)
        for index, name in turns:
            if self._names and self._names[-1] == SERVING:
                break
            self._lines.append(index)
            self._names.append(DRAFT if name == _LOADING and index >= second else name)

    def at(self, index: int) -> str:
        """Return the stage that line `index` belongs to: the last that an earlier line began, or nothing."""
        place = bisect_left(self._lines, index)
        return self._names[place - 1] if place else ""

    def turns(self, one: int, other: int) -> list[int]:
        """Return the lines between two others at which the attempt came to another stage."""
        first, last = bisect_right(self._lines, one), bisect_left(self._lines, other)
        return [self._lines[i] for i in range(first, last) if i == 0 or self._names[i] != self._names[i - 1]]
