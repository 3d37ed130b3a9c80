"""The pictures of results in a terminal: at most 80 columns, colours and fine dots where the terminal has them."""

import os
import shutil
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from vigil.screen import plain

if TYPE_CHECKING:
    from vigil.bench.chart import Row, Style
    from vigil.bench.panels import Panel
    from vigil.bench.report import Report

WIDEST = 80
NARROWEST = 30
ROOM_FOR_TWO = 64
HEIGHT = 11
GAP = 2
COLOURS = ("34", "33", "32", "35", "31", "36")  # as in the pictures on paper: blue, orange, green, purple, red


def charts_of(reports: "Sequence[Report]") -> str:
    """Return the pictures of reports as text for stdout; nothing where no arm has two loads to be joined."""
    from vigil.bench.panels import panels_of

    return charts(panels_of(reports))


def charts(panels: "Sequence[Panel]") -> str:
    """Return panels as text for stdout, those of one kind in a block; nothing where no line has two points to be joined."""
    panels = [one for one in panels if any(len(series.points) > 1 for series in one.series)]
    if not panels:
        return ""
    style, coloured = _style(), _coloured()
    parts = []
    for _, some in groupby(panels, key=lambda one: one.kind):
        parts += _block(list(some), style, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))
    return "\n".join(_line(row, coloured=coloured) for row in parts)


def _block(panels: "Sequence[Panel]", style: "Style", width: int) -> "list[Row]":
    """Return the panels of one kind of load, two in a row where there is room, and whose mark is whose."""
    from vigil.bench.chart import beside, draw, legend

    across = 2 if width >= ROOM_FOR_TWO and len(panels) > 1 else 1
    each = max(NARROWEST, min((width - GAP * (across - 1)) // across, ROOM_FOR_TWO))
    rows: list[Row] = []
    for some in _batches(panels, across):
        rows += [*beside([draw(one, each, HEIGHT, style) for one in some], each, GAP), []]
    known = {one.index: one for panel in panels for one in panel.series}
    told = any(found.low is not None for one in known.values() for _, found in one.points)
    note = "bars: 95 %" if told else ""
    return [*rows, legend([known[index] for index in sorted(known)], style, note), []]


def _batches(panels: "Sequence[Panel]", size: int) -> "list[Sequence[Panel]]":
    return [panels[at : at + size] for at in range(0, len(panels), size)]


def _line(row: "Row", *, coloured: bool) -> str:
    """Return a row as text, the parts of an arm in its colour."""
    parts = []
    for arm, cells in groupby(row, key=lambda cell: cell[1]):
        text = plain("".join(char for char, _ in cells))
        parts.append(f"\x1b[{COLOURS[arm % len(COLOURS)]}m{text}\x1b[0m" if coloured and arm is not None else text)
    return "".join(parts).rstrip()


def _coloured() -> bool:
    """Say whether colours are wanted (no-color.org) and there is a terminal that has them."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def _style() -> "Style":
    """Return the characters to draw with: those that the output's encoding holds and the terminal has a glyph for."""
    from vigil.bench.chart import ASCII, UNICODE

    if os.environ.get("TERM") in {"linux", "dumb"}:  # the kernel's own console has no braille
        return ASCII
    try:
        (UNICODE.marks + UNICODE.tick + "\u28ff").encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE
