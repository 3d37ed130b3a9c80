"""Which of two arms is faster, at which loads, in words: "faster up to 24 at once (2.1x at 1), slower from 40". Pure."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import exp, log

import msgspec

from vigil.bench.intervals import Answer, Interval, answer, ratio
from vigil.bench.row import Row
from vigil.bench.settings import Point

FEW_ROUNDS = 2
CLEAR = 1.1  # from here on two digits say enough
_VERBS = {"faster": "faster", "slower": "slower", "even": "as fast (within 2 %)"}


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two arms at one load. `ratio`: how many times as fast ours is as theirs; None where one of them has no measurement.

    That is throughput in a closed loop. With arrivals at a rate all that keep up have one throughput: there it is the inverse of
    the time of a whole answer.
    """

    point: Point
    answer: Answer
    ratio: Interval | None = None
    rounds: int = 0
    note: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """An arm against the first one. `crossing`: the concurrency at which it stops being faster, between two measured ones."""

    arm: str
    against: str
    points: tuple[Compared, ...]
    crossing: float | None = None
    text: str


def comparisons(arms: Sequence[str], rows: Sequence[Row], seed: int = 1) -> list[Comparison]:
    """Return each arm against the first, load by load and in words."""
    found = []
    for arm in arms[1:]:
        points = sorted({row.point for row in rows if row.arm in {arm, arms[0]}})
        compared = tuple(_compared(arm, arms[0], point, rows, seed) for point in points)
        text = words(arm, arms[0], compared)
        found.append(Comparison(arm=arm, against=arms[0], points=compared, crossing=crossing_of(compared), text=text))
    return found


def _compared(arm: str, against: str, point: Point, rows: Sequence[Row], seed: int) -> Compared:
    ours = {row.round: row for row in rows if row.arm == arm and row.point == point and row.measured}
    theirs = {row.round: row for row in rows if row.arm == against and row.point == point and row.measured}
    both = sorted(ours.keys() & theirs.keys())
    if not both:
        missing = next((name for name, some in ((arm, ours), (against, theirs)) if not some), "")
        note = f"{missing} has no measurement" if missing else "no round has both"
        return Compared(point=point, answer="inconclusive", note=note)
    try:
        found = ratio([_speed(ours[number]) for number in both], [_speed(theirs[number]) for number in both], seed)
    except ValueError:
        return Compared(point=point, answer="inconclusive", note="no answer ended in time")
    pairs = [row for number in both for row in (ours[number], theirs[number])]
    limit = next((row.client.limit for row in pairs if row.client is not None and row.client.limit), None)
    meant = answer(found)
    # A client at its limit hides a difference; what it still shows of one is there.
    if limit is not None and meant == "even":
        return Compared(point=point, answer="inconclusive", ratio=found, rounds=len(both), note=limit)
    return Compared(point=point, answer=meant, ratio=found, rounds=len(both), note=limit or "")


def _speed(row: Row) -> Sequence[float]:
    """Return in blocks how fast a row was."""
    if row.point.kind == "concurrency":
        return row.blocks
    return [1 / one for one in row.e2e_s.blocks if one > 0] if row.e2e_s else []


def crossing_of(points: Sequence[Compared]) -> float | None:
    """Return at which concurrency the ratio falls through 1, on a straight line between the logarithms of two loads.

    None where it is not surely faster before and surely slower after, or the order is another.
    """
    known = [one for one in points if one.ratio is not None and one.point.kind == "concurrency"]
    meant = [one.answer for one in known if one.answer in {"faster", "slower"}]
    if "faster" not in meant or "slower" not in meant or meant != sorted(meant):
        return None
    for before, after in pairwise(known):
        assert before.ratio is not None  # noqa: S101 - chosen so
        assert after.ratio is not None  # noqa: S101 - chosen so
        high, low = log(before.ratio.value), log(after.ratio.value)
        if high > 0 >= low:
            share = high / (high - low)
            return exp(log(before.point.value) + share * (log(after.point.value) - log(before.point.value)))
    return None


def words(arm: str, against: str, points: Sequence[Compared]) -> str:
    """Return the comparison as a sentence for each kind of load, with the loads between which it turns."""
    parts = []
    for kind, unit in (("concurrency", "concurrent requests"), ("rate", "requests a second")):
        some = [one for one in points if one.point.kind == kind]
        if some:
            parts.append(f"{arm} against {against}: {_clauses(some, unit)}")
    crossing = crossing_of(points)
    if crossing is not None:
        parts[0] += f"; they cross at about {crossing:.0f}"
    if any(one.ratio is not None and one.rounds == 1 for one in points):
        parts.append("one round only: what differs from start to start is not in these intervals")
    elif any(one.rounds == FEW_ROUNDS and one.answer == "inconclusive" for one in points):
        parts.append(
            "two rounds only: an interval of two is nine times as wide as they lie apart; three say far more (--repeats)"
        )
    return "\n".join(parts)


def _clauses(points: Sequence[Compared], unit: str) -> str:
    runs = [(meant, list(some)) for meant, some in groupby(points, key=_meant)]
    clauses: list[str] = []
    unknown: list[str] = []
    for index, (meant, some) in enumerate(runs):
        first, last = index == 0, index == len(runs) - 1
        if meant in _VERBS:
            named = "" if clauses else f" {unit}"
            clauses.append(f"{_VERBS[meant]} {_where(some, first=first, last=last)}{named} ({_best(some, meant)})")
        elif meant == "inconclusive":
            unknown.append("between: inconclusive" if not first and not last else f"inconclusive at {_span(some)}")
        else:
            unknown.append(f"{meant} at {_span(some)}")
    if not clauses:
        unknown[0] += f" {unit}"
    return "; ".join([*filter(None, [", ".join(clauses)]), *dict.fromkeys(unknown)])


def _meant(one: Compared) -> str:
    """Return the answer at a load, or why there is none where that is no matter of noise."""
    return one.note if one.ratio is None and one.note else one.answer


def _where(some: Sequence[Compared], *, first: bool, last: bool) -> str:
    if first and last:
        return f"at {_span(some)}"
    if first and len(some) > 1:
        return f"up to {some[-1].point.value:g}"
    return f"from {some[0].point.value:g}" if last else f"at {_span(some)}"


def _span(some: Sequence[Compared]) -> str:
    low, high = some[0].point.value, some[-1].point.value
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _best(some: Sequence[Compared], meant: str) -> str:
    """Return the strongest ratio of a run, and where it is."""
    pairs = [(one.ratio.value, one.point.value) for one in some if one.ratio is not None]
    value, at = max(pairs) if meant == "faster" else min(pairs)
    return f"{value:.2f}x at {at:g}" if value < CLEAR else f"{value:.2g}x at {at:g}"
