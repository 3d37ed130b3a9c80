"""One load by several processes of ours: each puts its share on the server, and what all of them saw is put together here.

They share one clock, one beginning and one series of prompts. Each hangs on a socket of ours and ends with it, so that no
kill of this process leaves one behind.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine, Sequence
from typing import IO

import msgspec

from vigil.bench.load import Share
from vigil.bench.messages import WORD, Begin, End, Ended, Heard, Job, Order, Word, framed, heard, unpacked
from vigil.bench.pulse import Heart, Pulse, worst
from vigil.bench.reply import Reply
from vigil.errors import MeasureError

SILENT_S = 60.0
LEAD_S = 0.05
GOES_S = 2.0
ERROR_BYTES = 16 << 10
MOST_BUFFERED = 4 << 20
PROGRAM = ("-P", "-m", "vigil.bench.hand")  # -P: not what lies in the folder where we happen to be


class Hand:
    """One process. Invariant: it does not outlive `close`, nor this process. Not to be spoken to before `connect`."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.name = f"client process {share.number + 1} of {share.of}"
        self.known_s = 0.0
        self._socket, its = socket.socketpair()
        # What it says at its death. A pipe that nobody reads would block it, and a file would want a place on the disk.
        self._said = os.fdopen(os.memfd_create(f"vigil-{share.number}"), "w+b")
        try:
            self._process = _process(its, self._said)
        except OSError as error:
            self._socket.close()
            self._said.close()
            raise MeasureError(f"{self.name} could not be started: {error.strerror}") from error
        finally:
            its.close()

    async def connect(self) -> None:
        """Open the way to it."""
        self._reader, self._writer = await asyncio.open_connection(sock=self._socket, limit=MOST_BUFFERED)

    def tell(self, message: Job | Order) -> None:
        """Say something to it; whether it still hears shows in what it says."""
        self._writer.write(framed(message))

    async def word(self) -> Word:
        """Return its next word; raise `MeasureError` where it has died, or says nothing."""
        try:
            async with asyncio.timeout(SILENT_S):
                return await heard(self._reader, WORD)
        except TimeoutError:
            raise MeasureError(f"{self.name} said nothing for {SILENT_S:g} s; finished rows are kept") from None
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise MeasureError(f"{self.name} {self._fate()}; finished rows are kept") from error

    def _fate(self) -> str:
        try:
            code = self._process.wait(GOES_S)
        except subprocess.TimeoutExpired:
            return "said no more"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        self._said.seek(0)
        lines = self._said.read(ERROR_BYTES).decode("utf-8", "replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "without a word")
        return f"ended with {code}: {last}"

    def close(self) -> None:
        """End it; it keeps nothing that is still wanted."""
        self._process.kill()
        self._process.wait()
        self._said.close()
        if hasattr(self, "_writer"):
            self._writer.close()
        else:
            self._socket.close()


def _process(its: socket.socket, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Start the program with the interrupt blocked: Ctrl-C is for us, and we end it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        command = [sys.executable, *PROGRAM]
        return subprocess.Popen(command, stdin=its.fileno(), stdout=subprocess.DEVNULL, stderr=said)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Crew:
    """All processes of one load, to be used as `load.Load` is. Invariant: when `run` has ended, none is left."""

    def __init__(self, job: Job, size: int) -> None:
        self.job, self.size = job, size
        self.replies: list[Reply] = []
        self.bins: list[int] = []
        self.began_s = 0.0
        self._hands: list[Hand] = []
        self._hearts: list[Heart] = []

    @property
    def known_s(self) -> float:
        """Until when all of them have told."""
        return min((one.known_s for one in self._hands), default=0.0)

    def pulse(self, from_s: float, to_s: float) -> Pulse:
        """Return how the process fared that fared worst."""
        return worst([one.pulse(from_s, to_s) for one in self._hearts])

    def end(self) -> None:
        """Let none send anything more."""
        self._tell(End())

    def cut(self, why: str) -> None:
        """Let all give up."""
        self._tell(End(why))

    def _tell(self, order: Order) -> None:
        for hand in self._hands:
            hand.tell(order)

    async def run(self) -> None:
        """Start the processes, let them begin together, and take in what they see until all have ended."""
        try:
            await self._started()
            self.began_s = time.perf_counter() + LEAD_S
            self._tell(Begin(self.began_s))
            await _all([self._take(hand) for hand in self._hands])
        finally:
            while self._hands:
                self._hands.pop().close()

    async def _started(self) -> None:
        for number in range(self.size):
            self._hands.append(Hand(Share(number=number, of=self.size)))
        for hand in self._hands:
            await hand.connect()
            hand.tell(msgspec.structs.replace(self.job, share=hand.share))
        for hand in self._hands:
            await hand.word()

    async def _take(self, hand: Hand) -> None:
        while not isinstance(word := await hand.word(), Ended):
            if isinstance(word, Heard):
                self._add(word)
                hand.known_s = word.until_s
        self._hearts.append(Heart.unpacked(word.beats))

    def _add(self, word: Heard) -> None:
        for at, count in word.bins:
            while at >= len(self.bins):
                self.bins.append(0)
            self.bins[at] += count
        self.replies += [unpacked(one) for one in word.replies]


async def _all(works: Sequence[Coroutine[None, None, None]]) -> None:
    """Wait for all; the first error ends the others, and comes out as itself."""
    tasks = [asyncio.create_task(one) for one in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
