"""Put a load on a server, or one share of it: closed loop, or open loop with Poisson arrivals. Nothing is judged here."""

import asyncio
import random
import time

import msgspec

from vigil.bench.brake import wait_s
from vigil.bench.client import Client
from vigil.bench.pulse import Heart, Pulse
from vigil.bench.reply import Failure, Reply
from vigil.bench.settings import Point, Settings
from vigil.bench.work import Work

BIN_S = 0.1
START_SPREAD_S = 0.001


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One of several equal parts of a load. Part `number` of `of` takes the workers and requests number, number + of, ..."""

    number: int = 0
    of: int = 1

    def part(self, total: int) -> int:
        """Return how many of a total are ours."""
        return len(range(self.number, total, self.of))


WHOLE = Share()


class Load:
    """The requests of one share. `replies` and `bins` grow while it runs; `bins` counts the events of each tenth of a second.

    Invariant: when `run` has ended, no request is open.
    """

    def __init__(self, client: Client, work: Work, point: Point, first_index: int = 0, share: Share = WHOLE) -> None:
        self.client, self.work, self.point, self.share = client, work, point, share
        self.settings: Settings = work.settings
        self.replies: list[Reply] = []
        self.bins: list[int] = []
        self.began_s = 0.0
        self.heart = Heart()
        self._next = first_index + share.number
        self._given = 0
        self._requests = None if self.settings.requests is None else share.part(self.settings.requests)
        self._over = asyncio.Event()
        part = f"/{share.number}/{share.of}" if share.of > 1 else ""
        self._rng = random.Random(f"{self.settings.seed}/{point.kind}/{point.value}/{first_index}{part}")  # noqa: S311
        client.on_token = self._hear

    @property
    def known_s(self) -> float:
        """Until when all that happened is known here."""
        return time.perf_counter()

    def pulse(self, from_s: float, to_s: float) -> Pulse:
        """Return how the client itself fared in a time."""
        return self.heart.pulse(from_s, to_s)

    def end(self) -> None:
        """Send nothing more; what is open is still waited for."""
        self._over.set()

    def cut(self, why: str) -> None:
        """Send nothing more, and give up what is open."""
        self._over.set()
        self.client.cut(Failure.CUT, why)

    async def run(self, at_s: float = 0.0) -> None:
        """Put the load on from a moment of `time.perf_counter` on, until told to end or all requests were sent."""
        await asyncio.sleep(at_s - time.perf_counter())
        self.began_s = at_s or time.perf_counter()
        heart = asyncio.create_task(self.heart.beat())
        try:
            await (self._closed() if self.point.kind == "concurrency" else self._open())
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)

    def _hear(self, at_s: float) -> None:
        index = int((at_s - self.began_s) / BIN_S)
        while index >= len(self.bins):
            self.bins.append(0)
        self.bins[index] += 1

    def _more(self) -> bool:
        if self._over.is_set() or (self._requests is not None and self._given >= self._requests):
            return False
        self._given += 1
        return True

    async def _one(self, share: float = 1.0) -> Reply:
        index, self._next = self._next, self._next + self.share.of
        reply = await self.client.ask(self.work.path, self.work.body(index, share))
        reply.whole_length = share >= 1.0
        self.replies.append(reply)
        return reply

    async def _closed(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.share.number, int(self.point.value), self.share.of):
                tasks.create_task(self._worker(number))

    async def _worker(self, number: int) -> None:
        """Ask again and again. Where a steady state is looked for, the first answer is of any length: fixed ones keep in step.

        A fixed number of requests begins at once, as with other tools: with 1,000 open a spread would be a sixth of six seconds.
        """
        share = 1.0
        if self.settings.requests is None:
            await asyncio.sleep(number * START_SPREAD_S)
            share = self._rng.uniform(0.05, 0.95) if self.point.value > 1 else 1.0
        failures = 0
        while self._more():
            reply = await self._one(share)
            share = 1.0
            failures = failures + 1 if reply.failure is not None else 0
            if failures:
                await self._pause(wait_s(failures, self.settings.backoff, self._rng, reply.retry_after_s))

    async def _pause(self, for_s: float) -> None:
        """Wait, but not longer than the measurement goes on."""
        try:
            async with asyncio.timeout(for_s):
                await self._over.wait()
        except TimeoutError:
            return

    async def _open(self) -> None:
        """Send at random times; shares of one rate, each with its own, are together as random as the whole."""
        due_s = time.perf_counter()
        most_open = max(1, self.share.part(self.settings.most_open))
        async with asyncio.TaskGroup() as tasks:
            while self._more():
                due_s += self._rng.expovariate(self.point.value / self.share.of)
                await self._pause(max(0.0, due_s - time.perf_counter()))
                if self._over.is_set():
                    return
                if self.client.open < most_open:
                    tasks.create_task(self._one())
                else:
                    self._unsent(most_open)

    def _unsent(self, most_open: int) -> None:
        """Count an arrival that was not sent: what waits already is more than a client should hold."""
        reply = Reply(time.perf_counter())
        reply.failure, reply.detail = Failure.UNSENT, f"{most_open} requests were open"
        self.replies.append(reply)
