"""Measurements as a table for people."""

from collections.abc import Sequence

from vigil.bench.figures import Figure
from vigil.bench.intervals import Interval
from vigil.screen import plain

NARROW = 3
_HEADS = (
    "load",
    "tokens/s",
    "95 %",
    "one user's",
    "95 %",
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
    parts = [
        "\n".join("  ".join(_put(row[at], widths[at], at, several=several) for at in some).rstrip() for row in rows)
        for some in _folded(widths, 2 if several else 1, width)
    ]
    return "\n".join(["\n\n".join(parts), *_below(figures, several=several)])


def _folded(widths: Sequence[int], fixed: int, room: int | None) -> list[list[int]]:
    """Return which columns stand beside each other; an interval stays with its value, the first `fixed` come again."""
    found = [list(range(fixed))]
    units = [
        [at, at + 1] if at - fixed in {0, 2} else [at] for at in range(fixed, len(widths)) if at - fixed not in {1, 3}
    ]
    for unit in units:
        wanted = [at for at in [*found[-1], *unit] if at < len(widths)]
        if room is not None and sum(widths[at] + 2 for at in wanted) - 2 > room and len(found[-1]) > fixed:
            found.append(list(range(fixed)))
        found[-1] += [at for at in unit if at < len(widths)]
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
    """Return what must be known beside the numbers."""
    lines = []
    for one in figures:
        who = f"{plain(one.arm, 24)}, {one.point.text}" if several else one.point.text
        if one.cause is not None:
            code = f" {one.cause.code}" if one.cause.code else ""
            lines.append(f"{who}: {one.cause.verdict}{code}: {plain(one.cause.text, 300)}")
        lines += [f"{who}: {plain(note, 300)}" for note in one.notes]
        if one.failures:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(one.failures.items()))
            lines.append(f"{who}: {kinds} ({plain(one.failure_text, 200)})")
    return ["", *lines] if lines else []
