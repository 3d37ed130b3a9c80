"""Says where a start that shows no failure stands: the phase, and the line that names it."""

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from vigil.diagnosis.prefix import without_carrier
from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.text import LogText
from vigil.engine_table import EngineTable, Phase
from vigil.facts import Line
from vigil.reading import read_lines

_KINDS = {
    Phase.ALLOCATING_KV: "hang_graph_capture",  # the graphs come next
    Phase.COMPILING: "hang_graph_capture",
    Phase.CAPTURING_GRAPHS: "hang_graph_capture",
    Phase.BINDING: "hang_warmup",
    Phase.WARMING_UP: "hang_warmup",
    Phase.SERVING: "hang_warmup",
}
_LOADING = "hang_loading"


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """Where a start stands, and what to look at.

    `line` counts from 1 in the log; `kind` is a category of the taxonomy.
    """

    phase: Phase
    line: int | None
    text: str
    kind: str
    advice: str = ""


def find_stuck(lines: Sequence[Line], log: LogText, table: EngineTable | None) -> Stuck | None:
    """Return the last line that names a phase, and that phase.

    None where there are no lines, or one says that it serves. Progress bars without a name, kernels that are built and
    communicators that are made belong to the phase they are met in. Where nothing names a phase, it is the first one,
    and the last line that says anything stands for it.
    """
    phase = Phase.IMPORTING if table is not None and table.imports else Phase.LAUNCHING
    last, kind, advice = -1, "", ""
    plain = [Line(line.number, without_carrier(text)) for line, text in zip(lines, log.texts, strict=True)]
    readings = read_lines(table, plain) if table is not None else {}
    if any(reading.ready for reading in readings.values()):
        return None
    stalls = _stalls(log)
    for index in sorted({*readings, *stalls}):
        reading = readings.get(index)
        if reading is not None and reading.phase is not None:
            phase, last, kind, advice = reading.phase, index, "", ""
        if index in stalls:
            stall = how_to_read().stall[stalls[index]]
            if stall.weak and kind:
                continue  # a parent waits for what a stall above names
            phase = Phase(stall.phase) if stall.phase else phase
            last, kind, advice = index, stall.kind, stall.advice
    if last < 0:
        last = next((i for i in range(len(log) - 1, -1, -1) if log.texts[i].strip()), -1)
    if last < 0:
        return None
    kind = kind or _KINDS.get(phase, _LOADING)
    return Stuck(
        phase=phase,
        line=lines[last].number,
        text=log.shown[last].strip(),
        kind=kind,
        advice=advice or how_to_read().waiting.get(kind, ""),
    )


@cache
def _patterns() -> tuple[re.Pattern[str] | None, ...]:
    return tuple(re.compile(stall.pattern) if stall.pattern else None for stall in how_to_read().stall)


def _stalls(log: LogText) -> dict[int, int]:
    """Return the lines behind which a start may wait, each with the number of its entry."""
    found: dict[int, int] = {}
    for number, (stall, pattern) in enumerate(zip(how_to_read().stall, _patterns(), strict=True)):
        for index in log.find(stall.text):
            if pattern is None or pattern.search(without_carrier(log.texts[index])):
                found.setdefault(index, number)
    return found
