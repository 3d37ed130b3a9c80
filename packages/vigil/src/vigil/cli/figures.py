"""Measurements as a table for people."""

from collections.abc import Sequence

from vigil.bench.figures import Figure
from vigil.bench.intervals import Interval
from vigil.screen import plain

NARROW = 3
FEW = 2
INTERVAL = "95 %"
_HEADS = (
    "load",
    "tokens/s",
    INTERVAL,
    "one user's",
    INTERVAL,
    "first token",
    "p99",
    "per token",
    "whole",
    "accept",
    "drafted",
    "run/wait",
    "failed",
)


def table_of(figures: Sequence[Figure], width: int | None = None) -> str:
    """Return the table of all figures, an arm after another, with what is doubtful below it.

    `width`: columns that there are; a wider table is folded: what has no room follows below, behind arm and load again.
    """
    several = len({one.arm for one in figures}) > 1
    heads = (("arm",) if several else ()) + _HEADS
    cells = [((plain(one.arm, 24),) if several else ()) + _cells(one) for one in figures]
    kept = [at for at in range(len(heads)) if at < NARROW or any(row[at] for row in cells)]
    rows = [[row[at] for at in kept] for row in [heads, *cells]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(kept))]
    fixed = 2 if several else 1
    parts = [
        "\n".join(
            "  ".join(_put(row[at], widths[at], at, several=several) for at in some).rstrip()
            for row in rows
            if any(row[at] for at in some[fixed:])
        )
        for some in _folded(rows[0], widths, fixed, width)
    ]
    return "\n".join(["\n\n".join(parts), *_below(figures, several=several)])


def _folded(heads: Sequence[str], widths: Sequence[int], fixed: int, room: int | None) -> list[list[int]]:
    """Return which columns stand beside each other; an interval stays with its value, the first `fixed` come again."""
    found = [list(range(fixed))]
    for at in range(fixed, len(heads)):
        if heads[at] == INTERVAL:
            continue
        unit = [one for one in (at, at + 1) if one == at or heads[one : one + 1] == [INTERVAL]]
        wide = sum(widths[one] + 2 for one in [*found[-1], *unit]) - 2
        if room is not None and wide > room and len(found[-1]) > fixed:
            found.append(list(range(fixed)))
        found[-1] += unit
    return found


def _put(cell: str, width: int, at: int, *, several: bool) -> str:
    return cell.ljust(width) if at <= several else cell.rjust(width)


def _cells(one: Figure) -> tuple[str, ...]:
    failed = sum(one.failures.values())
    shown = f"{failed}/{one.sent}" if failed else ""
    if one.output_per_s is None:
        return (one.point.text, "-", *[""] * (len(_HEADS) - 3), shown)
    return (
        one.point.text,
        number(one.output_per_s.value),
        span(one.output_per_s),
        number(one.user_per_s.value) if one.user_per_s else "",
        span(one.user_per_s) if one.user_per_s else "",
        millis(one.ttft_s.value if one.ttft_s else None),
        millis(one.ttft_p99_s),
        millis(one.tpot_s.value if one.tpot_s else None),
        millis(one.e2e_s.value if one.e2e_s else None),
        f"{one.accept_length:.2f}" if one.accept_length else "",
        "" if one.from_drafts is None else f"{one.from_drafts:.0%}",
        "" if one.running is None else f"{one.running:.0f}/{one.waiting or 0:.0f}",
        shown,
    )


def number(value: float) -> str:
    """Return a number with three significant digits, more where it is large."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"  # noqa: PLR2004


def span(found: Interval) -> str:
    """Return an interval."""
    return "" if found.low is None or found.high is None else f"{number(max(0.0, found.low))}..{number(found.high)}"


def millis(seconds: float | None) -> str:
    """Return seconds as milliseconds or seconds, whatever reads better."""
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _below(figures: Sequence[Figure], *, several: bool) -> list[str]:
    """Return what must be known beside the numbers; what is the same at several loads stands there once."""
    said: dict[tuple[str, str], list[Figure]] = {}
    for one in figures:
        for text in _said_of(one):
            said.setdefault((one.arm, text), []).append(one)
    loads = {arm: sum(one.arm == arm for one in figures) for arm in {one.arm for one in figures}}
    lines = []
    for (arm, text), some in said.items():
        where = ", ".join(one.point.text for one in some)
        if len(some) > FEW:
            where = "all loads" if len(some) == loads[arm] else f"{len(some)} loads"
        lines.append(f"{plain(arm, 24)}, {where}: {text}" if several else f"{where}: {text}")
    return ["", *lines] if lines else []


def _said_of(one: Figure) -> list[str]:
    """Return the cause of a missing measurement, the doubts about one that is there, and the failures."""
    found = []
    if one.cause is not None:
        code = f" {one.cause.code}" if one.cause.code else ""
        found.append(f"{one.cause.verdict}{code}: {plain(one.cause.text, 300)}")
    found += [plain(note, 300) for note in one.notes]
    if one.failures:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(one.failures.items()))
        found.append(f"{kinds} ({plain(one.failure_text, 200)})")
    return found
