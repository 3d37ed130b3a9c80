"""Boundaries as they stand on a command line: `1,3,5`."""

from itertools import pairwise

from vigil.errors import UsageError

MOST = 64
"""Of what a list may name; no target has more layers that are worth it."""


def boundaries_of(given: str | None) -> tuple[int, ...] | None:
    """Return them, None where none are given; UsageError where they do not rise."""
    if given is None:
        return None
    words = given.replace(",", " ").split()
    if not 0 < len(words) <= MOST or not all(one.isdecimal() and len(one) < 6 for one in words):  # noqa: PLR2004 - layers
        raise UsageError(f"--boundaries {given!r}: give numbers of layers, as 1,3,5")
    found = tuple(map(int, words))
    if any(a >= b for a, b in pairwise(found)):
        raise UsageError(f"--boundaries {given!r}: each must be greater than the one before")
    return found
