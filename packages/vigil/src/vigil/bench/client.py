"""Ask a server for one streamed answer after another over connections that are used again, and say what became of each."""

import asyncio
import contextlib
import resource
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from urllib.parse import urlsplit

import msgspec

from vigil.bench.answered import Reader, conclude, fail, shown, why
from vigil.bench.reply import Failure, Limits, Reply
from vigil.bench.wire import Connection, WireError

SWEEP_S = 0.25

Judge = Callable[[Connection, Reply], None]
"""Says what an answer that has ended amounts to."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server answers; `key` is sent as a bearer token and shown nowhere."""

    host: str
    port: int
    secure: bool = False
    key: str | None = None

    def head(self, method: str, path: str, length: int = 0) -> bytes:
        """Return the head of a request."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        lines = [f"{method} {path} HTTP/1.1", f"Host: {shown}:{self.port}", "Accept: */*", "User-Agent: vigil-bench"]
        if method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {length}"]
        if self.key:
            lines.append(f"Authorization: Bearer {self.key}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def place_of(url: str, key: str | None = None) -> Place:
    """Return the place that an address names, as `http://HOST:PORT`."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    return Place(host=parts.hostname or "", port=parts.port or (443 if secure else 80), secure=secure, key=key)


class Client:
    """A pool of connections to one place. `on_token` is called with the time of each event that brought text.

    Invariant: each connection is either idle here or carries exactly one request; none outlives `close`.
    """

    def __init__(self, place: Place, limits: Limits) -> None:
        self.place, self.limits = place, limits
        self.open = 0
        self.on_token: Callable[[float], None] | None = None
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Reply] = {}
        self._tls = ssl.create_default_context() if place.secure else None
        self._sweeper: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Drop all connections; what is still unanswered fails as `cut`."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.cut(Failure.CUT, "the measuring was over")
        while self._idle:
            self._idle.pop().close()

    def cut(self, failure: Failure, why: str) -> None:
        """End every request that is open."""
        for connection, reply in list(self._busy.items()):
            reply.failure, reply.detail = failure, why
            connection.close()

    async def ask(self, path: str, body: bytes, judge: Judge = conclude) -> Reply:
        """Send one request for tokens and read its answer to the end; never raises for what a server may do.

        `judge` reads what was not streamed: other bodies than OpenAI's, or more of them than counts.
        """
        self.open += 1
        try:
            return await self._ask(path, body, judge)
        finally:
            self.open -= 1

    async def _ask(self, path: str, body: bytes, judge: Judge) -> Reply:
        message = self.place.head("POST", path, len(body)) + body
        while True:
            reply = Reply(time.perf_counter())
            connection = self._taken()
            again = connection is not None
            if connection is None:
                connection = await self._connected(reply)
            if connection is None:
                reply.ended_s = time.perf_counter()
                return reply
            await self._exchange(connection, message, reply, judge)
            # A server closes an idle connection just when we use it again: nothing was heard, so it is asked anew, once.
            if not (again and reply.failure is Failure.DROPPED and connection.received == 0):
                return reply

    def _taken(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connected(self, reply: Reply) -> Connection | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.limits.connect_s):
                _, connection = await loop.create_connection(
                    Connection, self.place.host, self.place.port, ssl=self._tls
                )
        except TimeoutError:
            reply.failure, reply.detail = Failure.UNREACHABLE, f"no connection in {self.limits.connect_s:g} s"
        except (OSError, ssl.SSLError) as error:
            reply.failure, reply.detail = Failure.UNREACHABLE, shown(why(error))
        else:
            return connection
        return None

    async def _exchange(self, connection: Connection, message: bytes, reply: Reply, judge: Judge) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        self._busy[connection] = reply
        reader = Reader(reply, self.on_token)
        try:
            await connection.send(message, reader.take, self.limits.reply_bytes, self.limits.event_bytes)
        except WireError as error:
            fail(reply, Failure.FLOODED if error.flooded else Failure.GARBLED, str(error))
        except ConnectionError:
            fail(reply, Failure.DROPPED, "the connection ended")
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            del self._busy[connection]
            reply.ended_s = time.perf_counter()
        judge(connection, reply)
        if connection.usable:
            self._idle.append(connection)

    async def _sweep(self) -> None:
        """End what is silent or takes for ever: one task for all requests, since a timer for each costs more."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = time.perf_counter()
            for connection, reply in list(self._busy.items()):
                if now_s - connection.heard_s > self.limits.silence_s:
                    fail(reply, Failure.SILENT, f"not a byte for {self.limits.silence_s:g} s")
                elif now_s - reply.started_s > self.limits.whole_s:
                    fail(reply, Failure.SILENT, f"unfinished after {self.limits.whole_s:g} s")
                else:
                    continue
                connection.close()

    async def get(self, path: str, timeout_s: float = 5.0) -> tuple[int, bytes]:
        """Return status and body of a page; status 0 where there was no answer, with the reason where bytes came."""
        loop = asyncio.get_running_loop()
        connection: Connection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(
                    Connection, self.place.host, self.place.port, ssl=self._tls
                )
                await connection.send(self.place.head("GET", path), lambda _: None, 16 << 20, 1 << 20)
        except WireError as error:
            return 0, str(error).encode()
        except (TimeoutError, OSError, ssl.SSLError):
            return 0, b""
        finally:
            if connection is not None:
                connection.close()
        return (connection.head.status if connection.head else 0), bytes(connection.body)


@contextlib.asynccontextmanager
async def client_of(place: Place, limits: Limits) -> AsyncIterator[Client]:
    """Give a client, and leave no connection behind."""
    client = Client(place, limits)
    with _room():
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Let this process have as many connections as it may: the usual 1,024 are fewer than some loads.

    Only meanwhile, since what is started afterwards, such as the next arm of a comparison, would inherit it.
    """
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
