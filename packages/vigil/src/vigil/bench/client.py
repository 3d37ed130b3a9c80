"""Ask a server for one streamed answer after another over connections that are used again, and say what became of each."""

import asyncio
import contextlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import msgspec

from vigil.bench.events import Event, body_error, brings_text, decode, error_in
from vigil.bench.reply import Failure, Limits, Reply
from vigil.bench.wire import Connection, WireError
from vigil.screen import hide_secrets, plain

DETAIL_CHARS = 300
SWEEP_S = 0.25
_DONE = b"[DONE]"
_OK, _THROTTLED = 200, (429, 503)
_SERVER_FAULT = 500


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

    async def ask(self, path: str, body: bytes) -> Reply:
        """Send one request for tokens and read its answer to the end; never raises for what a server may do."""
        self.open += 1
        try:
            return await self._ask(path, body)
        finally:
            self.open -= 1

    async def _ask(self, path: str, body: bytes) -> Reply:
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
            await self._exchange(connection, message, reply)
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

    async def _exchange(self, connection: Connection, message: bytes, reply: Reply) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.get_running_loop().create_task(self._sweep())
        self._busy[connection] = reply
        reader = _Reader(reply, self.on_token)
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
        conclude(connection, reply)
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
        """Return status and body of a page; status 0 where there was no answer."""
        loop = asyncio.get_running_loop()
        connection: Connection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                _, connection = await loop.create_connection(
                    Connection, self.place.host, self.place.port, ssl=self._tls
                )
                await connection.send(self.place.head("GET", path), lambda _: None, 16 << 20, 1 << 20)
        except (TimeoutError, OSError, ssl.SSLError, WireError):
            return 0, b""
        finally:
            if connection is not None:
                connection.close()
        return (connection.head.status if connection.head else 0), bytes(connection.body)


@contextlib.asynccontextmanager
async def client_of(place: Place, limits: Limits) -> AsyncIterator[Client]:
    """Give a client, and leave no connection behind."""
    client = Client(place, limits)
    try:
        yield client
    finally:
        client.close()


class _Reader:
    """Reads the events of one answer into its reply."""

    __slots__ = ("_hear", "_reply")

    def __init__(self, reply: Reply, hear: Callable[[float], None] | None) -> None:
        self._reply, self._hear = reply, hear

    def take(self, data: bytes) -> None:
        """Take one event."""
        if data == _DONE:
            return
        reply = self._reply
        reply.streamed = True
        try:
            event = decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            fail(reply, Failure.GARBLED, f"an event that is none: {error}")
            return
        note(reply, event, self._hear)


def note(reply: Reply, event: Event, hear: Callable[[float], None] | None = None) -> None:
    """Put what an event says into the reply."""
    if event.choices:
        now_s = time.perf_counter()
        choice = event.choices[0]
        reply.last_s = now_s
        if brings_text(choice):
            reply.arrivals.append(now_s)
            if hear is not None:
                hear(now_s)
        if choice.finish_reason is not None:
            reply.finish = choice.finish_reason
    usage = event.usage
    if usage is not None:
        reply.input_tokens = max(0, usage.prompt_tokens or 0)
        if usage.completion_tokens is not None:
            reply.output_tokens = max(0, usage.completion_tokens)
        if usage.prompt_tokens_details is not None:
            reply.cached_tokens = usage.prompt_tokens_details.cached_tokens
    trouble = error_in(event)
    if trouble is not None:
        fail(reply, Failure.BROKEN, trouble)


def conclude(connection: Connection, reply: Reply) -> None:
    """Say what an answer that has ended amounts to."""
    head = connection.head
    if head is not None:
        reply.status = head.status
        if head.retry_after is not None:
            with contextlib.suppress(ValueError):
                reply.retry_after_s = max(0.0, float(head.retry_after))
    if reply.failure is not None or head is None:
        return
    if head.status != _OK:
        fail(reply, refusal(head.status), f"{head.status}: {body_error(bytes(connection.body[:65536]))}")
        return
    if not head.event_stream:
        read_whole(bytes(connection.body), reply)
    if reply.failure is not None:
        return
    if not reply.arrivals and not reply.output_tokens:
        fail(reply, Failure.EMPTY, "200, and not a token")
    elif reply.output_tokens is None:
        fail(reply, Failure.UNCOUNTED, "the answer has no usage")


def refusal(status: int) -> Failure:
    """Return the kind of failure that a status is."""
    if status in _THROTTLED:
        return Failure.THROTTLED
    return Failure.BROKEN if status >= _SERVER_FAULT else Failure.REFUSED


def read_whole(body: bytes, reply: Reply) -> None:
    """Read an answer that was not streamed."""
    try:
        event = decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        fail(reply, Failure.GARBLED, f"an answer that is none: {error}")
        return
    note(reply, event)


def fail(reply: Reply, failure: Failure, why: str) -> None:
    """Note the first failure of a request; what follows from it says less."""
    if reply.failure is None:
        reply.failure, reply.detail = failure, shown(why)


def why(error: OSError) -> str:
    """Return an error in the system's own words; asyncio puts addresses in their place."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def shown(text: str) -> str:
    """Return text of a server's, safe to keep and to show."""
    return plain(hide_secrets(" ".join(text.split())), DETAIL_CHARS)
