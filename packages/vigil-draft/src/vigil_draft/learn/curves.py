"""Trainings as curves over the tokens seen: loss, acceptance length, accuracy of each guess; on paper and in a terminal.

matplotlib is imported when something is drawn, and comes with `vigil-serve[pictures]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vigil.bench.intervals import Interval
from vigil.bench.panels import Panel, Series
from vigil.bench.picture import COLOURS, DPI, HEIGHT_IN, WIDTH_IN
from vigil.errors import UsageError

if TYPE_CHECKING:
    from vigil_draft.learn.record import Moment, Record

NAME = "training"
MILLION = 1e6
BELOW = "million tokens"
POINTS = 9
"""Of a curve in a terminal, each further along by the same factor."""
DIGITS = 3
FAINTEST = 0.3
DASHES = ("-", "--", "-.", ":")
Value = Callable[["Moment"], float]


def panels_of(records: Sequence[Record]) -> list[Panel]:
    """Return what a terminal shows: one training's guesses all in one panel, of several the first and the last guess."""
    found = [
        _panel("course", "loss", [(one.name, one, lambda it: it.loss) for one in records]),
        _panel("course", "estimated acceptance length", [(one.name, one, lambda it: it.length) for one in records]),
    ]
    if len(records) == 1:
        guesses = range(_guesses(records))
        lines = [(f"guess {at + 1}", records[0], _right(at)) for at in guesses]
        return [*found, _panel("accuracy", "accuracy of each guess", lines)]
    ends = dict.fromkeys((0, min(_guesses([one]) for one in records) - 1))
    return [
        *found,
        *(
            _panel("course", f"accuracy of guess {at + 1}", [(one.name, one, _right(at)) for one in records])
            for at in ends
        ),
    ]


def draw(records: Sequence[Record], folder: Path, title: str = "") -> list[Path]:
    """Draw trainings into a folder as PNG and SVG; return the files. Raises `UsageError` where they cannot be written."""
    made = [folder / f"{NAME}.png", folder / f"{NAME}.svg"]
    sheet = _sheet(records, title)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sheet.savefig(made[0])
        made[1].write_text(_svg(sheet), "utf-8")
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}") from error
    return made


def svg_of(records: Sequence[Record], title: str = "") -> str:
    """Return the picture of trainings as SVG."""
    return _svg(_sheet(records, title))


def _svg(sheet: Any) -> str:
    """Return a sheet as text that is the same for the same records: no date, and ids by a salt of its own."""
    import matplotlib as mpl  # noqa: PLC0415 - it takes a second, and may not be installed

    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": NAME}):
        sheet.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _sheet(records: Sequence[Record], title: str) -> Any:
    """Return the three panels; of several trainings a colour is a training, of one it is a guess, as its dashes always are."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    sheet = Figure(figsize=(3 * WIDTH_IN, HEIGHT_IN), dpi=DPI, layout="constrained")
    loss, length, accuracy = sheet.subplots(1, 3)
    alone = len(records) == 1
    for number, record in enumerate(records):
        colour = COLOURS[number % len(COLOURS)]
        _line(loss, record, lambda one: one.loss, color=colour, label=record.name)
        _line(length, record, lambda one: one.length, color=colour)
        for at in range(_guesses([record])):
            _line(accuracy, record, _right(at), **_look(at, None if alone else colour))
    for at in range(_guesses(records)):
        accuracy.plot([], [], label=f"guess {at + 1}", **_look(at, None if alone else "0.3"))
    for axis, name in ((loss, "loss"), (length, "estimated acceptance length"), (accuracy, "accuracy of each guess")):
        _dress(axis, name)
    accuracy.legend(frameon=False, fontsize=8, loc="lower right")
    loss.set_ylim(0, 1.05 * max(moment.loss for one in records for moment in one.moments) or 1.0)
    if not alone:
        sheet.legend(*loss.get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside lower center", ncols=6)
    sheet.suptitle((title or (records[0].name if alone else ""))[:120], fontsize=11, parse_math=False)
    return sheet


def _look(at: int, colour: str | None) -> dict[str, Any]:
    """Return how the line of a guess looks."""
    own = COLOURS[at % len(COLOURS)] if colour is None else colour
    return {"color": own, "alpha": max(FAINTEST, 1 - at / 8), "linestyle": DASHES[at % len(DASHES)]}


def _panel(kind: str, title: str, lines: Sequence[tuple[str, Record, Value]]) -> Panel:
    series = tuple(
        Series(arm=name, index=index, points=_points(record, value))
        for index, (name, record, value) in enumerate(lines)
    )
    return Panel(kind=kind, title=title, below=BELOW, series=series)


def _points(record: Record, value: Value) -> tuple[tuple[float, Interval], ...]:
    """Return a few points of a curve; the last is the last."""
    moments = record.moments
    first, last = max(1.0, moments[0].tokens), max(1.0, moments[-1].tokens)
    found: dict[float, Interval] = {}
    for number in range(POINTS):
        wanted = first * (last / first) ** (number / (POINTS - 1))
        nearest = min(moments, key=lambda one: abs(one.tokens - wanted))
        at = float(f"{nearest.tokens / MILLION:.{DIGITS}g}")
        if at > 0:
            found[at] = Interval(value=value(nearest))
    return tuple(found.items())


def _guesses(records: Sequence[Record]) -> int:
    return max(len(moment.accuracy) for one in records for moment in one.moments)


def _right(at: int) -> Value:
    return lambda moment: moment.accuracy[at] if at < len(moment.accuracy) else 0.0


def _line(axis: Any, record: Record, value: Value, **look: Any) -> None:
    axis.plot([one.tokens / MILLION for one in record.moments], [value(one) for one in record.moments], **look)


def _dress(axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(BELOW)
    axis.set_xlim(left=0)
    axis.grid(visible=True, alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
