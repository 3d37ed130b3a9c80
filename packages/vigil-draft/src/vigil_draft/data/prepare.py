"""Prepare training data: many conversations are answered by a server at once, and each answer is kept as it comes."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator

import msgspec

from vigil.bench.brake import Backoff, wait_s
from vigil.bench.client import Client
from vigil.bench.reply import Failure, Reply
from vigil.errors import MeasureError, UnreachableError
from vigil_draft.data.conversations import Conversation
from vigil_draft.data.dialects import Answer, Ask, Message
from vigil_draft.data.exchange import exchange
from vigil_draft.data.journal import Entry, Journal
from vigil_draft.data.probe import Known
from vigil_draft.data.template import Target
from vigil_draft.data.writing import Room, keep, write

SYNC_S = 1.0
TRIES = 4
GIVEN_UP_S = 600.0
GOES_ON = "what is answered is kept: mend it, and the same command goes on"
GONE = frozenset({Failure.UNREACHABLE, Failure.DROPPED, Failure.SILENT})


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the target answers. `room`: how long; `seed`: of drawn tokens."""

    room: Room
    temperature: float = 0.0
    seed: int = 0
    backoff: Backoff = Backoff()
    given_up_s: float = GIVEN_UP_S


class Progress:
    """How far it is, counted from this run's beginning where it is a speed."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done, self.before = total, done, done
        self.tokens = self.throttled = 0
        self.began_s = time.perf_counter()

    def line(self) -> str:
        """Return it in one line."""
        lasted_s = max(1e-9, time.perf_counter() - self.began_s)
        here = self.done - self.before
        left_s = (self.total - self.done) * lasted_s / here if here else 0.0
        words = [f"[{self.done:,}/{self.total:,}]", f"{self.tokens / lasted_s:,.0f} tokens/s"]
        if self.throttled:
            words.append(f"{self.throttled:,} times told to come back later")
        return "  ".join([*words, *([f"about {left_s / 60:.0f} min left"] if left_s >= 60 else [])])  # noqa: PLR2004


class Preparing:
    """Asks for all that the journal lacks. Invariant: what is in the journal is not asked again."""

    def __init__(
        self, conversations: tuple[Conversation, ...], target: Target, journal: Journal, sampling: Sampling
    ) -> None:
        self.conversations, self.target, self.journal, self.sampling = conversations, target, journal, sampling
        self.progress = Progress(len(conversations), len(journal.at))
        self._good_s = time.perf_counter()

    def missing(self) -> Iterator[int]:
        """Yield the numbers of conversations that have no entry yet."""
        return (number for number in range(len(self.conversations)) if number not in self.journal.at)

    def keep_answers(self) -> None:
        """Take the answers of the files themselves."""
        for number in list(self.missing()):
            self._add(keep(number, self.conversations[number], self.target, self.sampling.room))
        self.journal.sync()

    async def ask(self, client: Client, known: Known, concurrency: int) -> None:
        """Have the server answer.

        Raises:
            UnreachableError: It has died, in one line that says how to go on.
            MeasureError: It fails again and again, or the disk is full.

        """
        waiting = self.missing()
        syncing = asyncio.create_task(self._sync())
        workers = [
            asyncio.create_task(self._work(waiting, _Asker(self, client, known, n))) for n in range(max(1, concurrency))
        ]
        try:
            await _first_error([*workers], syncing)
        finally:
            for task in (*workers, syncing):
                task.cancel()
            await asyncio.gather(*workers, syncing, return_exceptions=True)
            with_disk(self.journal.sync)

    async def _work(self, waiting: Iterator[int], asker: "_Asker") -> None:
        for number in waiting:
            entry = await asker.entry(number)
            self._add(entry)

    def _add(self, entry: Entry) -> None:
        with_disk(lambda: self.journal.add(entry))
        self.progress.done += 1

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(SYNC_S)
            await asyncio.to_thread(with_disk, self.journal.sync)

    def heard(self, reply: Reply) -> float:
        """Take note of a reply; return for how long none was good."""
        now_s = time.perf_counter()
        if reply.failure is None:
            self._good_s = now_s
        elif reply.failure is Failure.THROTTLED:
            self.progress.throttled += 1
        return now_s - self._good_s


class _Refused(Exception):  # noqa: N818 - no error of ours
    """The server does not take a question, whoever asks."""


class _Asker:
    """One of those that ask at once: it waits after each refusal, longer each time, and none hammers."""

    def __init__(self, preparing: Preparing, client: Client, known: Known, number: int) -> None:
        self._all, self._client, self._known = preparing, client, known
        self._rng = random.Random(f"{preparing.sampling.seed}/{number}")  # noqa: S311 - no secret

    async def entry(self, number: int) -> Entry:
        """Return what becomes of a conversation."""
        sampling = self._all.sampling
        one = self._all.conversations[number]

        async def reply(ids: list[int], messages: list[Message], most: int) -> Answer:
            if (
                not self._known.dialect.exact
                and self._known.dialect.name == "chat"
                and self._all.target.holds_structure(messages)
            ):
                raise _Refused("a word of the template's structure is in it, and the server would read it as structure")
            return await self._answer(
                Ask(
                    model=self._known.served.model, ids=ids, messages=messages, max_tokens=most,
                    temperature=sampling.temperature, seed=(sampling.seed * 1_000_003 + number) & 0x7FFFFFFF,
                )
            )  # fmt: skip

        try:
            return await write(number, one, self._all.target, sampling.room, reply)
        except _Refused as error:
            return Entry(n=number, lost=f"refused: {error}")

    async def _answer(self, ask: Ask) -> Answer:
        failures = fatal = 0
        while True:
            reply, answer = await exchange(self._client, self._known.dialect, ask)
            without_s = self._all.heard(reply)
            if answer is not None and reply.failure is None:
                self._all.progress.tokens += len(answer.ids or ())
                return answer
            failures += 1
            fatal += reply.failure is not Failure.THROTTLED
            if reply.failure is Failure.REFUSED:
                raise _Refused(reply.detail)
            self._judge(reply, fatal, without_s)
            await asyncio.sleep(wait_s(failures, self._all.sampling.backoff, self._rng, reply.retry_after_s))

    def _judge(self, reply: Reply, fatal: int, without_s: float) -> None:
        """Stop all where the server has died, or gives nothing for long; let one go that it fails on alone."""
        url = self._known.served.url
        patience_s = (
            sum(
                min(self._all.sampling.backoff.most_s, self._all.sampling.backoff.first_s * 2**n)
                for n in range(TRIES - 1)
            )
            / 2
        )
        if fatal >= TRIES and without_s >= patience_s:
            if reply.failure in GONE:
                raise UnreachableError(
                    f"{url} has died, or is out of reach ({reply.failure}: {reply.detail}); {GOES_ON}"
                )
            raise MeasureError(f"{url} fails again and again ({reply.failure}: {reply.detail}); {GOES_ON}")
        if fatal >= 2 * TRIES:
            raise _Refused(f"{reply.failure}: {reply.detail}")
        if without_s >= self._all.sampling.given_up_s:
            raise MeasureError(
                f"{url} has answered nothing for {without_s:.0f} s ({reply.failure}: {reply.detail}); {GOES_ON}"
            )


def with_disk(work: Callable[[], None]) -> None:
    """Do what writes; raise `MeasureError` in one line where the disk does not take it."""
    try:
        work()
    except OSError as error:
        raise MeasureError(f"an answer could not be kept: {error.strerror}; {GOES_ON}") from error


async def _first_error(workers: "list[asyncio.Task[None]]", beside: "asyncio.Task[None]") -> None:
    """Wait until all have ended; the first error comes out as itself."""
    waiting: set[asyncio.Task[None]] = set(workers)
    while waiting:
        done, _ = await asyncio.wait({*waiting, beside}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        waiting -= done
