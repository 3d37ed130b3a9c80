"""The patterns of users' own rules: each rule has a small allowance of time, since one pattern can take for ever.

`re` cannot be interrupted: `(a+)+$` on a line of a thousand letters holds the whole process. `regex` takes the same patterns and
a time limit, by the processor's clock. Ours stay with `re`, which is as fast, and are tested for what they cost.
"""

import time
from typing import Protocol

import msgspec

ALLOWANCE_S = 0.5
"""Processor time for one rule and one attempt. A usual pattern takes some 2 us a line, of 600 lines at most for each text."""


class Found(Protocol):
    """What a search found."""

    def groupdict(self) -> dict[str, str | None]:
        """Return the named groups."""
        ...


class Searches(Protocol):
    """A pattern, ready to search with: one of `re`, or a user's."""

    def search(self, string: str, /) -> Found | None:
        """Return the first match in a text."""
        ...


class SlowRule(msgspec.Struct, frozen=True):
    """A user's rule that took more than its allowance. `field`: the pattern on which it did (`when[0].pattern`)."""

    code: str
    field: str


class TooSlowError(Exception):
    """A user's rule has used up its allowance: nothing can be said with it."""

    def __init__(self, slow: SlowRule) -> None:
        super().__init__(f"{slow.code}: {slow.field}")
        self.slow = slow


class Allowance:
    """What is left to one rule. Invariant: it goes down with each search, and a search takes no more than is left."""

    def __init__(self) -> None:
        self.left_s = ALLOWANCE_S


class Patient:
    """A user's pattern. Searches by all patterns of a rule go on one allowance."""

    def __init__(self, pattern: str, place: SlowRule, allowance: Allowance) -> None:
        import regex  # noqa: PLC0415 - only users' own rules need it

        self._compiled = regex.compile(pattern)
        self._place = place
        self._allowance = allowance

    def search(self, string: str, /) -> Found | None:
        """Return the first match; raise `TooSlowError` where the rule has no time left."""
        began_s = time.thread_time()
        try:
            found: Found | None = self._compiled.search(string, timeout=max(self._allowance.left_s, 0.0))
        except TimeoutError:
            raise TooSlowError(self._place) from None
        self._allowance.left_s -= time.thread_time() - began_s
        return found


def wrong_with(pattern: str) -> str:
    """Return what is wrong with a user's pattern, or nothing."""
    import regex  # noqa: PLC0415 - as above

    try:
        regex.compile(pattern)
    except regex.error as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""
