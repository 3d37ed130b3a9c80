"""All rows of an arm at one load as figures with intervals: what tables and pictures show. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median

import msgspec

from vigil.bench.intervals import Interval, interval
from vigil.bench.row import Cause, Row, Spread
from vigil.bench.settings import Point


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """An arm at one load. `user_per_s`: tokens a second that one request gets. `cause`: there is nothing to show, and why."""

    arm: str
    point: Point
    rounds: int = 0
    output_per_s: Interval | None = None
    user_per_s: Interval | None = None
    ttft_s: Interval | None = None
    ttft_p99_s: float | None = None
    tpot_s: Interval | None = None
    e2e_s: Interval | None = None
    requests_per_s: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    accept_length: float | None = None
    running: float | None = None
    waiting: float | None = None
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    failure_text: str = ""
    sent: int = 0
    notes: tuple[str, ...] = ()
    cause: Cause | None = None


def figures(rows: Iterable[Row], seed: int = 1) -> list[Figure]:
    """Return the figures of all arms and loads, arms in the order in which they first appear, loads from the lightest."""
    found: dict[str, dict[Point, list[Row]]] = {}
    for row in rows:
        found.setdefault(row.arm, {}).setdefault(row.point, []).append(row)
    return [_figure(arm, point, some, seed) for arm, points in found.items() for point, some in sorted(points.items())]


def _figure(arm: str, point: Point, rows: Sequence[Row], seed: int) -> Figure:
    good = [row for row in sorted(rows, key=lambda row: row.round) if row.measured]
    failed = next((row.cause for row in reversed(rows) if row.cause is not None), None)
    failures: Counter[str] = Counter()
    for row in rows:
        failures.update(row.failures)
    told = next((row.failure_text for row in rows if row.failure_text), "")
    notes = tuple(dict.fromkeys(note for row in rows for note in row.notes))
    sent = sum(row.sent for row in rows)
    common = Figure(
        arm=arm, point=point, failures=dict(failures), failure_text=told, sent=sent, notes=notes, cause=failed
    )
    if not good:
        return common
    return msgspec.structs.replace(
        common,
        rounds=len(good),
        output_per_s=interval([row.blocks for row in good], seed),
        user_per_s=_of([row.tpot_s for row in good], seed, inverted=True),
        ttft_s=_of([row.ttft_s for row in good], seed),
        ttft_p99_s=median([row.ttft_s.p99 for row in good if row.ttft_s] or [0.0]) or None,
        tpot_s=_of([row.tpot_s for row in good], seed),
        e2e_s=_of([row.e2e_s for row in good], seed),
        requests_per_s=median(row.requests_per_s for row in good),
        input_tokens=fmean(row.input_tokens for row in good),
        output_tokens=fmean(row.output_tokens for row in good),
        accept_length=_mean([row.told.accept_length for row in good]),
        running=_mean([row.told.running for row in good]),
        waiting=_mean([row.told.waiting for row in good]),
    )


def _of(spreads: Sequence[Spread | None], seed: int, *, inverted: bool = False) -> Interval | None:
    """Return the interval of the medians of some spreads."""
    rounds = [[1 / one if inverted else one for one in found.blocks if one > 0] for found in spreads if found]
    rounds = [one for one in rounds if one]
    return interval(rounds, seed) if rounds else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return fmean(known) if known else None
