"""Which k (draft tokens a step) for which load: tiers that never rise with the load and lose least, and where they change. Pure.

The loss of an arm at a load is how far its median lies under that of the best arm there, as a logarithm; none where the noise
hides it. The tiers are the sequence of least loss, of these the one with the fewest changes, of these the fastest.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Literal

import msgspec

from vigil.bench.intervals import Interval, Rounds, answer, ratio

SHARE = 0.75
"""`below` of `above`, as vigil-engine's off_above has it: some two standard deviations of a Poisson load at 40, one at 10."""
Kind = Literal["switch", "always", "never", "inconclusive"]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured at one load: by k the speeds of each round, in parts; a round that is missing is empty."""

    load: int
    speeds: dict[int, Rounds]


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """A k, and the running requests above which it is entered and below which it is left; None for the first."""

    k: int
    above: int | None = None
    below: int | None = None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What the loads amount to. `chosen`: the k of each load; `gain`: of that over off.

    `fixed`: of the k that one would leave on (the first tier's) over off; `best`: of the best k there is; by load. `open`: loads
    at which the noise hides whether speculation pays, that of the best k or of the one that was chosen.
    """

    kind: Kind
    tiers: tuple[Tier, ...]
    chosen: dict[int, int]
    gain: dict[int, Interval]
    fixed: dict[int, Interval]
    best: dict[int, Interval]
    open: tuple[int, ...] = ()


def fit(loads: Sequence[Load], seed: int = 1) -> Fit | None:
    """Return the tiers that lose least; None where no load has both off and speculation."""
    known = sorted((one for one in loads if _has(one, 0) and any(_has(one, k) for k in one.speeds if k)), key=_load)
    every_k = sorted({k for one in known for k in one.speeds}, reverse=True)
    path = _path([{k: _loss(one, k, seed) for k in every_k} for one in known], every_k)
    if path is None:
        return None
    chosen = {one.load: k for one, k in zip(known, path, strict=True)}
    gain = {one.load: _ratio(one, chosen[one.load], 0, seed) or Interval(value=1.0) for one in known}
    left_on = path[0] or every_k[0]
    fixed = {one.load: found for one in known if (found := _ratio(one, left_on, 0, seed))}
    best = {one.load: found for one in known if (found := _ratio(one, _best(one), 0, seed))}
    hidden = [one.load for one in known if one.load not in best or answer(best[one.load]) == "inconclusive"]
    unsure = tuple(load for load, k in chosen.items() if load in hidden or (k and answer(gain[load]) == "inconclusive"))
    if len(hidden) == len(known):
        kind: Kind = "inconclusive"
    elif path[0] == path[-1]:
        kind = "always" if path[0] else "never"
    else:
        kind = "switch"
    return Fit(kind=kind, tiers=_tiers(known, path), chosen=chosen, gain=gain, fixed=fixed, best=best, open=unsure)


def speed(rounds: Rounds) -> float:
    """Return the median over the rounds of the mean of their parts."""
    return median(fmean(one) for one in rounds if one)


def _load(one: Load) -> int:
    return one.load


def _has(one: Load, k: int) -> bool:
    return any(one.speeds.get(k, ()))


def _ratio(one: Load, ours: int, theirs: int, seed: int) -> Interval | None:
    if ours == theirs or not (_has(one, ours) and _has(one, theirs)):
        return None
    try:
        return ratio(one.speeds[ours], one.speeds[theirs], seed)
    except ValueError:  # no round has both
        return None


def _best(one: Load) -> int:
    """Return the k above 0 that is fastest at a load."""
    return max((k for k in one.speeds if k and _has(one, k)), key=lambda k: speed(one.speeds[k]))


def _loss(one: Load, k: int, seed: int) -> tuple[float, float]:
    """Return how much an arm loses against the best: as far as that is sure, and as it was seen; infinite without a figure."""
    if not _has(one, k):
        return math.inf, math.inf
    best = max((other for other in one.speeds if _has(one, other)), key=lambda other: speed(one.speeds[other]))
    seen = math.log(speed(one.speeds[best]) / speed(one.speeds[k])) if best != k else 0.0
    found = _ratio(one, best, k, seed)
    return (seen if found is not None and answer(found) == "faster" else 0.0), seen


_Cost = tuple[float, int, float]


def _path(losses: Sequence[Mapping[int, tuple[float, float]]], every_k: Sequence[int]) -> list[int] | None:
    """Return the k of each load, never rising, of least (sure loss, changes, seen loss)."""
    if not losses:
        return None
    best: dict[int, tuple[_Cost, list[int]]] = {
        k: ((losses[0][k][0], 0, losses[0][k][1]), [k]) for k in every_k if losses[0][k][0] < math.inf
    }
    for row in losses[1:]:
        further: dict[int, tuple[_Cost, list[int]]] = {}
        for k in every_k:
            ways = [
                ((sure + row[k][0], changes + (k != before), seen + row[k][1]), [*path, k])
                for before, ((sure, changes, seen), path) in best.items()
                if before >= k and row[k][0] < math.inf
            ]
            if ways:
                further[k] = min(ways)
        best = further
    return min(best.values())[1] if best else None


def _tiers(known: Sequence[Load], path: Sequence[int]) -> tuple[Tier, ...]:
    found = [Tier(k=path[0])]
    for (before, k_before), (after, k) in pairwise(zip(known, path, strict=True)):
        if k != k_before:
            above = _crossing(before, after, k_before, k)
            lower = found[-1].below or 1
            below = min(above + 1, max(lower + 1, math.ceil(above * SHARE)))
            found.append(Tier(k=k, above=above, below=below))
    return tuple(found)


def _crossing(before: Load, after: Load, more: int, less: int) -> int:
    """Return the last whole load at which the larger k is not slower: where the log ratio crosses 0, linear in log2 of the load.

    In the middle where it does not cross between the two: then the noise is larger than what is between the arms.
    """
    ratios = [_gap(one, more, less) for one in (before, after)]
    share = 0.5
    if ratios[0] is not None and ratios[1] is not None and ratios[0] > 0 > ratios[1]:
        share = ratios[0] / (ratios[0] - ratios[1])
    at = math.log2(before.load) + share * (math.log2(after.load) - math.log2(before.load))
    return max(before.load, min(after.load - 1, math.floor(2**at + 1e-9)))


def _gap(one: Load, more: int, less: int) -> float | None:
    if not (_has(one, more) and _has(one, less)):
        return None
    return math.log(speed(one.speeds[more]) / speed(one.speeds[less]))
