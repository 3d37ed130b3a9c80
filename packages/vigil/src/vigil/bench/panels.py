"""What is drawn of results: throughput and one user's speed against concurrency, latency against rate. Pure."""

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from vigil.bench.figures import Figure
from vigil.bench.intervals import Interval
from vigil.bench.report import Report

FURTHEST = 1.6  # how far above the highest value an axis goes for an interval


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One arm: its name, its number among all arms, and at each load a value with its interval."""

    arm: str
    index: int
    points: tuple[tuple[float, Interval], ...]


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of all arms. `below`: what the loads are. `top`: where the axis ends; wider intervals leave it.

    Panels of one `kind` stand side by side.
    """

    kind: str
    title: str
    below: str
    series: tuple[Series, ...]

    @property
    def top(self) -> float:
        """The highest of values and intervals, as long as the values stay readable below it."""
        found = [interval for one in self.series for _, interval in one.points]
        highest = max(one.value for one in found)
        reach = max(one.value if one.high is None else one.high for one in found)
        return min(reach, FURTHEST * highest) or 1.0

    @property
    def loads(self) -> tuple[float, ...]:
        """All loads of all arms, from the lightest."""
        return tuple(sorted({at for one in self.series for at, _ in one.points}))


_Value = Callable[[Figure], Interval | None]
_KINDS: tuple[tuple[Literal["concurrency", "rate"], str, tuple[tuple[str, _Value], ...]], ...] = (
    (
        "concurrency",
        "concurrent requests",
        (
            ("output tokens a second", lambda one: one.output_per_s),
            ("tokens a second for one user", lambda one: one.user_per_s),
        ),
    ),
    (
        "rate",
        "requests a second",
        (
            ("seconds to the first token", lambda one: one.ttft_s),
            ("seconds per token", lambda one: one.tpot_s),
            ("seconds for a whole answer", lambda one: one.e2e_s),
        ),
    ),
)


def panels_of(reports: Sequence[Report]) -> list[Panel]:
    """Return what there is to draw of some reports, all arms in one; nothing of a quantity that nobody measured."""
    figures = labelled(reports)
    arms = list(dict.fromkeys(one.arm for one in figures))
    found = []
    for kind, below, quantities in _KINDS:
        some = [one for one in figures if one.point.kind == kind]
        for title, value in quantities:
            series = tuple(line for index, arm in enumerate(arms) if (line := _series(arm, index, some, value)).points)
            if series:
                found.append(Panel(kind=kind, title=title, below=below, series=series))
    return found


def _series(arm: str, index: int, figures: Sequence[Figure], value: _Value) -> Series:
    known = [(one.point.value, found) for one in figures if one.arm == arm and (found := value(one)) is not None]
    return Series(arm=arm, index=index, points=tuple(sorted(known, key=lambda pair: pair[0])))


def labelled(reports: Sequence[Report]) -> list[Figure]:
    """Return all figures; where two results have an arm of one name, the result's own number is added."""
    found: list[Figure] = []
    taken: set[str] = set()
    for number, report in enumerate(reports, 1):
        arms = {one.arm for one in report.figures}
        clash = bool(arms & taken)
        taken |= arms
        found += [
            msgspec.structs.replace(one, arm=f"{one.arm} ({number})" if clash else one.arm) for one in report.figures
        ]
    return found
