"""Says in which stage an attempt was when a line came: the same words mean another thing while graphs are captured."""

import re
from bisect import bisect_left, bisect_right
from functools import cache

from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.text import LogText

SERVING = "serving"
WARMING_UP = "warming_up"
DRAFT = "loading_draft"
_LOADING = "loading"
_NEAR = 200
"""Lines of the log within which a parent tells of the same failure."""
_BEGINS = ("Load weight begin",)
"""SGLang prints it once for the target and once more for the draft."""


@cache
def _frames_that_served() -> tuple[re.Pattern[str], ...]:
    """Return what frames of a loop that serves match, of one that may be the first request's, of a request, of a start."""
    served = how_to_read().served
    return tuple(map(re.compile, (served.loop, served.first, served.request, served.all)))


class Stages:
    """The stages of one attempt, by line. Invariant: what has served goes on serving."""

    def __init__(self, log: LogText) -> None:
        self._log = log
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

    def at(self, index: int, frames: str = "") -> str:
        """Return the stage that line `index` belongs to: the last that an earlier line began, or nothing.

        `frames` are those of the traceback that the line ends: a log may not go back to its server's start.
        """
        place = bisect_left(self._lines, index)
        name = self._names[place - 1] if place else ""
        loop, first, request, start = _frames_that_served()
        alone = not name and (first.search(frames) or (request.search(frames) and not start.search(frames)))
        served = self._told(index) or loop.search(frames) or alone
        return SERVING if served else name

    def _told(self, index: int) -> bool:
        told = self._log.first_after(how_to_read().served.told, index)
        return told is not None and self._log.apart(index, told) <= _NEAR

    def turns(self, one: int, other: int) -> list[int]:
        """Return the lines between two others at which the attempt came to another stage."""
        first, last = bisect_right(self._lines, one), bisect_left(self._lines, other)
        return [self._lines[i] for i in range(first, last) if i == 0 or self._names[i] != self._names[i - 1]]
