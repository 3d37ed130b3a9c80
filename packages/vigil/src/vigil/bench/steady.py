"""Where a measurement's steady state begins: found in what came, not assumed. Pure.

The marginal standard error rule (White 1997): of all beginnings in the first half, the one is taken after which the mean is
known best. A beginning that is still good at the middle, or halves that differ, mean that there is no steady state yet.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, pvariance

LEAST_GROUPS = 16
MOST_GROUPS = 64
AGREES = 0.04
CERTAIN = 3.0


def steady_from(bins: Sequence[float]) -> int | None:
    """Return the index of the first bin of the steady state, or None where there is none yet.

    `bins` are amounts of equal times, such as tokens in each tenth of a second.
    """
    size = max(1, len(bins) // MOST_GROUPS)
    groups = [fmean(bins[at : at + size]) for at in range(0, len(bins) - size + 1, size)]
    if len(groups) < LEAST_GROUPS:
        return None
    cut = _best_cut(groups)
    if cut >= len(groups) // 2 - 1 or not _halves_agree(groups[cut:]):
        return None
    return cut * size


def _best_cut(groups: Sequence[float]) -> int:
    """Return after how many groups the standard error of the mean of the rest is least; never more than half of them."""
    count, total, squares = 0, 0.0, 0.0
    best, least = 0, float("inf")
    for index in range(len(groups) - 1, -1, -1):
        count, total, squares = count + 1, total + groups[index], squares + groups[index] ** 2
        if index <= len(groups) // 2:
            error = max(0.0, squares / count - (total / count) ** 2) / count
            if error <= least:
                best, least = index, error
    return best


def _halves_agree(groups: Sequence[float]) -> bool:
    """Say whether the first and the second half have one mean, as far as the noise can tell."""
    middle = len(groups) // 2
    first, second = groups[:middle], groups[middle:]
    mean = fmean(groups)
    if mean <= 0:
        return False
    noise = sqrt(pvariance(first) / len(first) + pvariance(second) / len(second))
    return abs(fmean(first) - fmean(second)) <= max(AGREES * mean, CERTAIN * noise)
