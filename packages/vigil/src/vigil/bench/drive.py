"""Judge a load while it goes on: where its steady state begins, when it was seen long enough, when to give it up."""

import asyncio
import math
import time
from typing import Protocol

from vigil.bench.load import BIN_S
from vigil.bench.pulse import Pulse
from vigil.bench.reply import Failure, Reply
from vigil.bench.settings import Point, Settings
from vigil.bench.steady import steady_from

LOOK_S = 0.25
LEAST_ANSWERS = 5
GENERATIONS = 2  # as many requests again as were open: one generation of them is one wave, wherever it is cut off
LONGEST_WAIT_S = 600.0
"""How long a load is put on before the server has come to what is to be measured; then it is measured as it is."""
HOPELESS_S = 5.0
HOPELESS_TRIES = 8


class Putting(Protocol):
    """What puts a load on a server: in this process (`load.Load`) or in several (`crew.Crew`)."""

    replies: list[Reply]
    bins: list[int]
    began_s: float

    @property
    def known_s(self) -> float:
        """Until when all that happened is known here."""

    async def run(self) -> None:
        """Put the load on until told to end, or all requests were sent, and nothing is open."""

    def end(self) -> None:
        """Send nothing more."""

    def cut(self, why: str) -> None:
        """Give up what is open, too."""

    def pulse(self, from_s: float, to_s: float) -> Pulse:
        """Return how the client itself fared in a time."""


class Drive:
    """One measurement while it goes on. After `run`: all `replies`, and the time from `from_s` to `to_s` that counts.

    `steady` False: no steady state was found in the time that there was. `trouble`: why it was ended early. `settled_s`: from
    when on what is seen may count; None while the server is not where it is to be measured (`waits`: somebody sets it).
    """

    def __init__(self, load: Putting, point: Point, settings: Settings, *, waits: bool = False) -> None:
        self.load, self.point, self.settings = load, point, settings
        self.from_s = self.to_s = 0.0
        self.steady = False
        self.trouble: str | None = None
        self.settled_s: float | None = None if waits else 0.0
        self._looked = 0
        self._good = 0
        self._last_good_s = 0.0

    @property
    def replies(self) -> list[Reply]:
        """All requests that are over."""
        return self.load.replies

    @property
    def bins(self) -> list[int]:
        """The events of each tenth of a second."""
        return self.load.bins

    @property
    def began_s(self) -> float:
        """When the load began; 0 before."""
        return self.load.began_s

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began_s if self.began_s else 0.0

    @property
    def pulse(self) -> Pulse:
        """How the client itself fared in the time that counts."""
        return self.load.pulse(self.from_s, self.to_s)

    @property
    def _waited_s(self) -> float:
        """How long the load was put on before the server had settled."""
        return self.elapsed_s if self.settled_s is None else max(0.0, self.settled_s - self.began_s)

    async def run(self) -> None:
        """Put the load on, judge when it has been enough, and wait for what is still open."""
        load = asyncio.create_task(self.load.run())
        try:
            await self._judge(load)
            if self.trouble is not None:
                self.load.cut(self.trouble)
            self.load.end()
            await load
            if self.settings.requests is not None:
                self.to_s = max((one.ended_s for one in self.replies), default=self.to_s)
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)

    async def _judge(self, load: "asyncio.Task[None]") -> None:
        """Return when enough was seen."""
        fixed = self.settings.requests is not None
        while not load.done():
            await asyncio.wait({load}, timeout=LOOK_S)
            if not self.began_s:
                continue
            self.trouble = self._hopeless()
            self.to_s = time.perf_counter()
            if self.trouble is not None:
                break
            if not fixed and self._enough():
                return
            if not fixed and self.elapsed_s >= self.settings.longest_s + min(self._waited_s, LONGEST_WAIT_S):
                break
        whole_bins = int(self.elapsed_s / BIN_S)
        if not fixed and self.from_s == 0.0:  # measured as it is: the second half
            self.from_s = self.began_s + whole_bins // 2 * BIN_S
        self.from_s = self.from_s or self.began_s

    def _enough(self) -> bool:
        """Look for the steady state, and say whether it has been seen long enough."""
        known_s = self.load.known_s
        whole = max(0, int((known_s - self.began_s) / BIN_S))
        bins = [*self.bins[:whole], *([0] * (whole - len(self.bins)))]
        before = math.ceil(self._waited_s / BIN_S)
        first = None if self.settled_s is None else steady_from(bins[before:])
        if first is None:
            self.steady, self.from_s = False, 0.0
            return False
        self.steady, self.from_s = True, self.began_s + (before + first) * BIN_S
        if known_s - self.from_s < self.settings.seconds:
            return False
        ended = sum(1 for one in self.replies if one.failure is None and one.ended_s >= self.from_s)
        wanted = GENERATIONS * self.point.value if self.point.kind == "concurrency" else 0
        return ended >= max(LEAST_ANSWERS, wanted)

    def _hopeless(self) -> str | None:
        """Say why it makes no sense to go on, or None: nothing but failures for a while."""
        self._note_good()
        if len(self.replies) < HOPELESS_TRIES or time.perf_counter() - self._last_good_s < HOPELESS_S:
            return None
        latest = self.replies[-HOPELESS_TRIES:]
        if any(one.failure is None for one in latest):
            return None
        if all(one.failure in {Failure.UNREACHABLE, Failure.DROPPED, Failure.REFUSED} for one in latest):
            return f"every request fails: {latest[-1].detail}"
        return None if self._good else self._never(latest[-1])

    def _note_good(self) -> None:
        """Take note of the answers since the last look."""
        good = [one.ended_s for one in self.replies[self._looked :] if one.failure is None]
        self._looked = len(self.replies)
        self._good += len(good)
        self._last_good_s = max([self._last_good_s or self.began_s, *good])

    def _never(self, last: Reply) -> str | None:
        return f"not one request was answered: {last.detail}" if self.elapsed_s > self.settings.longest_s / 2 else None
