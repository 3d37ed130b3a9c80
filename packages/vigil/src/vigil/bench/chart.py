"""Draw a panel in characters: lines in braille dots or in ASCII, a mark at each load, its interval as a bar. Pure.

A drawing is rows of cells; a cell is a character and the number of the arm that it belongs to, None for axes and words.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log2, log10

import msgspec

from vigil.bench.panels import Panel, Series

Cell = tuple[str, int | None]
Row = list[Cell]
TICKS = 5
NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
THOUSAND = 1000
DOTS_ACROSS, DOTS_DOWN = 2, 4
_BRAILLE = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """The characters that a terminal has. `lines`: what an arm's line is made of; `dashes`: (dots on, dots off) of it."""

    marks: str
    lines: str
    dashes: tuple[tuple[int, int], ...]
    tick: str
    wall: str
    floor: str
    corner: str
    foot: str
    bar: str
    dots: bool


UNICODE = Style(
    marks="●■▲◆▼✚", lines="", dashes=((1, 0), (3, 2), (1, 2), (5, 2), (2, 4), (1, 4)),
    tick="┤", wall="│", floor="─", corner="┼", foot="┬", bar="", dots=True,
)  # fmt: skip
ASCII = Style(
    marks="ox*#@%", lines=".-:~,'", dashes=((1, 0),) * 6,
    tick="+", wall="|", floor="-", corner="+", foot="+", bar="|", dots=False,
)  # fmt: skip


class Canvas:
    """A field of cells that is drawn on in dots. Invariant: a mark is never painted over."""

    def __init__(self, width: int, height: int, style: Style) -> None:
        self.width, self.height, self.style = width, height, style
        self.across, self.down = (DOTS_ACROSS, DOTS_DOWN) if style.dots else (1, 1)
        self.cells: list[list[Cell]] = [[(" ", None)] * width for _ in range(height)]
        self._dots = [[0] * width for _ in range(height)]
        self._marked: set[tuple[int, int]] = set()

    def dot(self, x: int, y: int, arm: int, char: str) -> None:
        """Set the dot at column `x` from the left and row `y` from the top, if it lies on the field."""
        column, row = x // self.across, y // self.down
        if not (0 <= column < self.width and 0 <= row < self.height) or (column, row) in self._marked:
            return
        if self.style.dots:
            self._dots[row][column] |= _BRAILLE[x % DOTS_ACROSS][y % DOTS_DOWN]
            char = chr(0x2800 + self._dots[row][column])
        self.cells[row][column] = (char, arm)

    def mark(self, x: int, y: int, arm: int) -> None:
        """Put an arm's mark where a value lies; beside it, where another arm's mark is there already."""
        row = min(self.height - 1, max(0, y // self.down))
        at = x // self.across
        free = (one for one in (at, at + 1, at - 1, at + 2, at - 2) if (one, row) not in self._marked)
        column = next((one for one in free if 0 <= one < self.width), None)
        if column is not None:
            self._marked.add((column, row))
            self.cells[row][column] = (self.style.marks[arm % len(self.style.marks)], arm)


def draw(panel: Panel, width: int, height: int, style: Style) -> list[Row]:
    """Return a panel as `height` + 4 rows of at most `width` cells: title, field, axis, loads, what they are."""
    step = step_of(panel.top)
    ticks = [step * number for number in range(ceil(panel.top / step - 1e-9) + 1)]
    names = [compact(one) for one in ticks]
    gutter = max(map(len, names))
    canvas = Canvas(width - gutter - 2, height, style)
    at = _places(panel.loads, canvas)
    for series in panel.series:
        _bars(canvas, series, at, ticks[-1])
        _lines(canvas, series, at, ticks[-1])
    for series in panel.series:
        for load, found in series.points:
            canvas.mark(at[load], _down(found.value, ticks[-1], canvas), series.index)
    named = {_down(one, ticks[-1], canvas) // canvas.down: name for one, name in zip(ticks[1:], names[1:], strict=True)}
    rows = [_text(panel.title.center(width - gutter - 2), " " * (gutter + 2))]
    for number, cells in enumerate(canvas.cells):
        label = named.get(number, "")
        rows.append([*_text(f"{label:>{gutter}} {style.tick if label else style.wall}"), *cells])
    columns = {one // canvas.across for one in at.values()}
    floor = "".join(style.foot if column in columns else style.floor for column in range(canvas.width))
    rows.append(_text(f"{names[0]:>{gutter}} {style.corner}{floor}"))
    rows.append(_text(_loads(at, canvas), " " * (gutter + 2)))
    rows.append(_text(panel.below.center(canvas.width), " " * (gutter + 2)))
    return rows


def beside(drawings: Sequence[Sequence[Row]], width: int, gap: int) -> list[Row]:
    """Return drawings of one height side by side, each `width` wide."""
    rows = []
    for parts in zip(*drawings, strict=True):
        row: Row = []
        for number, part in enumerate(parts):
            row += [*part, *_text(" " * (width - len(part) + (gap if number < len(parts) - 1 else 0)))]
        rows.append(row)
    return rows


def legend(series: Sequence[Series], style: Style, note: str) -> Row:
    """Return one row that tells whose mark is whose."""
    row: Row = []
    for one in series:
        row += [(style.marks[one.index % len(style.marks)], one.index), *_text(f" {one.arm}   ")]
    return [*row, *_text(note)]


def step_of(top: float) -> float:
    """Return the distance of the ticks of an axis that ends at `top` or a little above: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(top / TICKS))
    return next(one * power for one in NICE if one * power * TICKS >= top * (1 - 1e-9))


def compact(value: float) -> str:
    """Return a tick's number in a few characters: 0.05, 150, 2.5k, 12k."""
    return f"{value / THOUSAND:g}k" if value >= THOUSAND else f"{value:.4g}"


def _text(text: str, before: str = "") -> Row:
    return [(char, None) for char in before + text]


def _places(loads: Sequence[float], canvas: Canvas) -> dict[float, int]:
    """Return the dot column of each load, on a logarithmic scale."""
    low, high = log2(loads[0]), log2(loads[-1])
    inner = (canvas.width - 4) * canvas.across  # a mark and half a label stay clear of the edges
    shift = 2 * canvas.across
    if high == low:
        return {loads[0]: shift + inner // 2}
    return {one: shift + round((log2(one) - low) / (high - low) * (inner - 1)) for one in loads}


def _down(value: float, top: float, canvas: Canvas) -> int:
    """Return the dot row of a value: the first one for what is higher than the axis, the one below the field for nothing."""
    return max(0, round((1 - max(0.0, value) / top) * canvas.height * canvas.down))


def _bars(canvas: Canvas, series: Series, at: dict[float, int], top: float) -> None:
    """Draw the intervals of an arm; two arms have dots of their own within a cell."""
    for load, found in series.points:
        if found.low is None or found.high is None:
            continue
        for y in range(_down(found.high, top, canvas), _down(found.low, top, canvas) + 1):
            canvas.dot(
                at[load] // canvas.across * canvas.across + series.index % canvas.across,
                y,
                series.index,
                canvas.style.bar,
            )


def _lines(canvas: Canvas, series: Series, at: dict[float, int], top: float) -> None:
    """Join the values of an arm, in its own dashes."""
    on, off = canvas.style.dashes[series.index % len(canvas.style.dashes)]
    char = canvas.style.lines[series.index % len(canvas.style.lines)] if canvas.style.lines else ""
    drawn = 0
    for before, after in pairwise(series.points):
        start = at[before[0]], _down(before[1].value, top, canvas)
        for x, y in _between(start, (at[after[0]], _down(after[1].value, top, canvas))):
            if drawn % (on + off) < on:
                canvas.dot(x, y, series.index, char)
            drawn += 1


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for number in range(steps):
        share = number / steps
        yield round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share)


def _loads(at: dict[float, int], canvas: Canvas) -> str:
    """Return the line of loads, each below its place; one that has no room is left out, the last one never."""
    line = [" "] * (canvas.width + 1)
    order = sorted(at, reverse=True)
    for load in (order[0], order[-1], *order[1:-1]):
        name = f"{load:g}"
        first = min(max(0, at[load] // canvas.across - (len(name) - 1) // 2), len(line) - len(name))
        if all(one == " " for one in line[max(0, first - 1) : first + len(name) + 1]):
            line[first : first + len(name)] = name
    return "".join(line).rstrip()
