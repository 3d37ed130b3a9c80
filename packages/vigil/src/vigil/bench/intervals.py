"""Medians with bootstrap intervals, and whether two of them differ. Pure; every draw comes from a seed.

What was measured is rounds of blocks: a round is one measurement (of one start of the server, in a comparison), its blocks are
parts of its steady state. Rounds differ by more than their blocks do (clocks, placement, neighbours), so with several rounds
only these are drawn. An interval of so few is too narrow; it is widened by what Student's t asks for (Hesterberg 2015, section
5.3). With one round the blocks are drawn, and what differs between rounds is not in the interval.
"""

import random
from collections.abc import Sequence
from math import exp, log, sqrt
from statistics import NormalDist, fmean, median
from typing import Literal

import msgspec

LEVEL = 0.95
DRAWS = 1000
EVEN = 0.02
Rounds = Sequence[Sequence[float]]
Answer = Literal["faster", "slower", "even", "inconclusive"]


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it lies with 95 % confidence; `low` and `high` None: one number says nothing of its noise."""

    value: float
    low: float | None = None
    high: float | None = None


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, between neighbours where it falls between them; raise `ValueError` where there is no value."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def widening(count: int) -> float:
    """Return by what the interval of a few values must be stretched: Student's t over the normal, and n over n - 1."""
    if count < 2:  # noqa: PLR2004
        return 1.0
    return student(count - 1) / NormalDist().inv_cdf((1 + LEVEL) / 2) * sqrt(count / (count - 1))


def student(freedom: int) -> float:
    """Return the 97.5 % point of Student's t; a table, and beyond it an expansion in 1/freedom good to 0.1 %."""
    known = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
    if freedom <= len(known):
        return known[freedom - 1]
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2)
    return (
        normal
        + (normal**3 + normal) / (4 * freedom)
        + (5 * normal**5 + 16 * normal**3 + 3 * normal) / (96 * freedom**2)
    )


def interval(rounds: Rounds, seed: int = 1) -> Interval:
    """Return the median over the rounds of the mean of their blocks, with its interval; raise `ValueError` without a value."""
    whole = [one for one in rounds if one]
    if not whole:
        raise ValueError("no values")
    rng = random.Random(seed)  # noqa: S311 - no secret
    if len(whole) == 1:
        blocks = whole[0]
        return _around(fmean(blocks), len(blocks), [fmean(rng.choices(blocks, k=len(blocks))) for _ in range(DRAWS)])
    means = [fmean(one) for one in whole]
    return _around(median(means), len(means), [median(rng.choices(means, k=len(means))) for _ in range(DRAWS)])


def ratio(ours: Rounds, theirs: Rounds, seed: int = 1) -> Interval:
    """Return how many times as much ours is as theirs, round by round, with its interval.

    Raises `ValueError` where no round has both.
    """
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if a and b and min(fmean(a), fmean(b)) > 0]
    if not pairs:
        raise ValueError("no values")
    if len(pairs) > 1:
        found = interval([[log(fmean(a) / fmean(b))] for a, b in pairs], seed)
    else:
        rng = random.Random(seed)  # noqa: S311 - no secret
        a, b = pairs[0]
        draws = [log(_mean_drawn(a, rng) / _mean_drawn(b, rng)) for _ in range(DRAWS)]
        found = _around(log(fmean(a) / fmean(b)), min(len(a), len(b)), draws)
    low, high = (None if one is None else exp(one) for one in (found.low, found.high))
    return Interval(value=exp(found.value), low=low, high=high)


def answer(found: Interval) -> Answer:
    """Say what a ratio means: `even` where it is surely within 2 %, `inconclusive` where the noise hides the answer."""
    if found.low is None or found.high is None:
        return "inconclusive"
    if found.low >= 1 - EVEN and found.high <= 1 + EVEN:
        return "even"
    if found.low > 1:
        return "faster"
    return "slower" if found.high < 1 else "inconclusive"


def _mean_drawn(blocks: Sequence[float], rng: random.Random) -> float:
    return max(fmean(rng.choices(blocks, k=len(blocks))), 1e-12)


def _around(value: float, count: int, draws: list[float]) -> Interval:
    """Return the interval that the draws span around a value, widened for what few values cannot show."""
    if count == 1:
        return Interval(value=value)
    factor = widening(count)
    low, high = quantile(draws, (1 - LEVEL) / 2), quantile(draws, (1 + LEVEL) / 2)
    return Interval(
        value=value, low=value + (min(low, value) - value) * factor, high=value + (max(high, value) - value) * factor
    )
