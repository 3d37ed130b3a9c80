"""Put one load on a server until its steady state was seen long enough: closed loop, or open loop with Poisson arrivals."""

import asyncio
import random
import time

from vigil.bench.brake import wait_s
from vigil.bench.client import Client
from vigil.bench.pulse import Heart, Pulse
from vigil.bench.reply import Failure, Reply
from vigil.bench.settings import Point, Settings
from vigil.bench.steady import steady_from
from vigil.bench.work import Work

BIN_S = 0.1
LOOK_S = 0.25
START_SPREAD_S = 0.001
LEAST_ANSWERS = 5
HOPELESS_S = 5.0
HOPELESS_TRIES = 8


class Drive:
    """One measurement while it goes on. After `run`: all `replies`, and the time from `from_s` to `to_s` that counts.

    `steady` False: no steady state was found in the time that there was. `trouble`: why it was ended early.
    """

    def __init__(self, client: Client, work: Work, point: Point, first_index: int = 0) -> None:
        self.client, self.work, self.point = client, work, point
        self.settings: Settings = work.settings
        self.replies: list[Reply] = []
        self.bins: list[int] = []
        self.began_s = self.from_s = self.to_s = 0.0
        self.steady = False
        self.trouble: str | None = None
        self.heart = Heart()
        self._next = first_index
        self._given = 0
        self._over = asyncio.Event()
        self._rng = random.Random(f"{self.settings.seed}/{point.kind}/{point.value}/{first_index}")  # noqa: S311
        self._good = 0
        self._last_good_s = 0.0
        client.on_token = self._hear

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return time.perf_counter() - self.began_s if self.began_s else 0.0

    @property
    def pulse(self) -> Pulse:
        """How the client itself fared in the time that counts."""
        return self.heart.pulse(self.from_s, self.to_s)

    def _hear(self, at_s: float) -> None:
        index = int((at_s - self.began_s) / BIN_S)
        while index >= len(self.bins):
            self.bins.append(0)
        self.bins[index] += 1

    async def run(self) -> None:
        """Put the load on, judge when it has been enough, and wait for what is still open."""
        self.began_s = self._last_good_s = time.perf_counter()
        heart = asyncio.create_task(self.heart.beat())
        load = asyncio.create_task(self._closed() if self.point.kind == "concurrency" else self._open())
        try:
            await self._judge(load)
            self._over.set()
            if self.trouble is not None:
                self.client.cut(Failure.CUT, self.trouble)
            await load
            if self.settings.requests is not None:
                self.to_s = max((one.ended_s for one in self.replies), default=self.to_s)
        finally:
            for task in (heart, load):
                task.cancel()
            await asyncio.gather(heart, load, return_exceptions=True)

    async def _judge(self, load: "asyncio.Task[None]") -> None:
        """Return when enough was seen."""
        fixed = self.settings.requests is not None
        while not load.done():
            await asyncio.wait({load}, timeout=LOOK_S)
            self.trouble = self._hopeless()
            self.to_s = time.perf_counter()
            if self.trouble is not None:
                break
            if not fixed and self._enough():
                return
            if not fixed and self.elapsed_s >= self.settings.longest_s:
                break
        whole_bins = int(self.elapsed_s / BIN_S)
        if not fixed and self.from_s == 0.0:  # measured as it is: the second half
            self.from_s = self.began_s + whole_bins // 2 * BIN_S
        self.from_s = self.from_s or self.began_s

    def _enough(self) -> bool:
        """Look for the steady state, and say whether it has been seen long enough."""
        now_s = time.perf_counter()
        whole = int((now_s - self.began_s) / BIN_S)
        bins = [*self.bins[:whole], *([0] * (whole - len(self.bins)))]
        first = steady_from(bins)
        if first is None:
            self.steady, self.from_s = False, 0.0
            return False
        self.steady, self.from_s = True, self.began_s + first * BIN_S
        if now_s - self.from_s < self.settings.seconds:
            return False
        ended = sum(1 for one in self.replies if one.failure is None and one.ended_s >= self.from_s)
        wanted = self.point.value if self.point.kind == "concurrency" else 0
        return ended >= max(LEAST_ANSWERS, wanted)

    def _hopeless(self) -> str | None:
        """Say why it makes no sense to go on, or None: nothing but failures for a while."""
        if len(self.replies) < HOPELESS_TRIES or time.perf_counter() - self._last_good_s < HOPELESS_S:
            return None
        latest = self.replies[-HOPELESS_TRIES:]
        if any(one.failure is None for one in latest):
            return None
        if all(one.failure in {Failure.UNREACHABLE, Failure.DROPPED, Failure.REFUSED} for one in latest):
            return f"every request fails: {latest[-1].detail}"
        return None if self._good else self._never(latest[-1])

    def _never(self, last: Reply) -> str | None:
        return f"not one request was answered: {last.detail}" if self.elapsed_s > self.settings.longest_s / 2 else None

    def _more(self) -> bool:
        if self._over.is_set():
            return False
        if self.settings.requests is not None and self._given >= self.settings.requests:
            return False
        self._given += 1
        return True

    async def _one(self, share: float = 1.0) -> Reply:
        index, self._next = self._next, self._next + 1
        reply = await self.client.ask(self.work.path, self.work.body(index, share))
        reply.whole_length = share >= 1.0
        self.replies.append(reply)
        if reply.failure is None:
            self._good += 1
            self._last_good_s = reply.ended_s
        return reply

    async def _closed(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(int(self.point.value)):
                tasks.create_task(self._worker(number))

    async def _worker(self, number: int) -> None:
        """Ask again and again. The first answer is of any length: fixed lengths would keep all requests in step."""
        await asyncio.sleep(number * START_SPREAD_S)
        in_step = self.settings.requests is not None or self.point.value < 2  # noqa: PLR2004
        share = 1.0 if in_step else self._rng.uniform(0.05, 0.95)
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
        due_s = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            while self._more():
                due_s += self._rng.expovariate(self.point.value)
                await self._pause(max(0.0, due_s - time.perf_counter()))
                if self._over.is_set():
                    return
                if self.client.open < self.settings.most_open:
                    tasks.create_task(self._one())
                else:
                    self._unsent()

    def _unsent(self) -> None:
        """Count an arrival that was not sent: what waits already is more than a client should hold."""
        reply = Reply(time.perf_counter())
        reply.failure, reply.detail = Failure.UNSENT, f"{self.settings.most_open} requests were open"
        self.replies.append(reply)
