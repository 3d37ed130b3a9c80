"""One HTTP/1.1 connection that streams: bytes in, events out, nothing kept that is not needed. Bounded in all it keeps.

An `asyncio.Protocol` and not streams: one wake-up brings all bytes that are there, without a task switch for each. What it
gives over other clients is measured by bench/client_ceiling.py.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

HEAD_BYTES: Final = 64 << 10
KEPT_BODY_BYTES: Final = 4 << 20
_OK: Final = 200


class WireError(Exception):
    """The bytes are no HTTP that we read, or more than was allowed. `flooded`: the latter."""

    def __init__(self, text: str, *, flooded: bool = False) -> None:
        super().__init__(text)
        self.flooded = flooded


class Head:
    """Status and the headers that matter, of one answer."""

    __slots__ = ("chunked", "close", "event_stream", "length", "retry_after", "status")

    def __init__(self, data: bytes) -> None:
        first, *lines = data.split(b"\r\n")
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():  # noqa: PLR2004
            raise WireError(f"no HTTP: {first[:60]!r}")
        self.status = int(words[1][:3])
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        self.chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
        length = headers.get(b"content-length", b"")
        self.length = int(length) if length.isdigit() and len(length) < 16 and not self.chunked else None  # noqa: PLR2004
        self.close = b"close" in headers.get(b"connection", b"").lower() or words[0] == b"HTTP/1.0"
        self.event_stream = b"text/event-stream" in headers.get(b"content-type", b"").lower()
        self.retry_after = headers.get(b"retry-after")


class Connection(asyncio.Protocol):
    """Carries one request at a time. `on_event` gets each event's data as it comes; `done` ends with the answer.

    Invariant: while `done` is pending, an answer is awaited; before and after, the connection is idle or closed.
    """

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.done: asyncio.Future[None] | None = None
        self.head: Head | None = None
        self.body = bytearray()
        self.heard_s = 0.0
        self.received = 0
        self.used = False
        self._on_event: Callable[[bytes], None] | None = None
        self._raw = bytearray()
        self._event = b""
        self._left = 0
        self._in_chunk = False
        self._limit = self._event_limit = 0
        self._discarding = False

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        return self.transport is not None and not self.transport.is_closing() and self.done is None

    def send(
        self, data: bytes, on_event: Callable[[bytes], None], limit: int, event_limit: int
    ) -> "asyncio.Future[None]":
        """Send a request; return what ends when its answer has."""
        assert self.transport is not None  # noqa: S101 - connected
        self.head, self.body, self.received = None, bytearray(), 0
        self._raw, self._event, self._left, self._in_chunk, self._discarding = bytearray(), b"", 0, False, False
        self._on_event, self._limit, self._event_limit = on_event, limit, event_limit
        self.heard_s = time.perf_counter()
        self.done = done = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return done

    def close(self) -> None:
        """End the connection; an answer that is awaited fails."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP or TLS
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer: well, where it is one that the end of the connection ends."""
        if self.done is None:
            return
        head = self.head
        if exc is None and head is not None and not head.chunked and head.length is None:
            self._finish()
        else:
            self._fail(ConnectionError("the connection ended"))

    def data_received(self, data: bytes) -> None:
        """Take bytes in."""
        if self.done is None:
            self.close()  # nobody asked
            return
        self.heard_s = time.perf_counter()
        self.received += len(data)
        if self.received > self._limit:
            self._fail(WireError(f"more than {self._limit >> 20} MiB", flooded=True))
            return
        try:
            if self.head is None:
                self._read_head(data)
            elif self.head.chunked:
                self._read_chunks(data)
            else:
                self._read_plain(data)
        except WireError as error:
            self._fail(error)

    def _read_head(self, data: bytes) -> None:
        self._raw += data
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            if len(self._raw) > HEAD_BYTES:
                raise WireError("a header without end", flooded=True)
            return
        self.head = Head(bytes(self._raw[:end]))
        rest = bytes(self._raw[end + 4 :])
        self._raw = bytearray()
        if 100 <= self.head.status < 200:  # noqa: PLR2004 - an interim answer: the real one follows
            self.head = None
            if rest:
                self._read_head(rest)
        elif self.head.chunked:
            self._read_chunks(rest)
        else:
            self._left = self.head.length or 0
            self._read_plain(rest)

    def _read_plain(self, data: bytes) -> None:
        assert self.head is not None  # noqa: S101 - read before
        if self.head.length is None:
            self._take(data)
            return
        self._take(data[: self._left])
        self._left -= min(len(data), self._left)
        if self._left == 0:
            self._finish()

    def _read_chunks(self, data: bytes) -> None:
        """Take the chunks apart. `_left` counts the bytes of the present one with its line end."""
        raw = bytes(self._raw) + data if self._raw else data
        at, size = 0, len(raw)
        while at < size:
            if self._in_chunk:
                part = raw[at : at + self._left]
                self._left -= len(part)
                at += len(part)
                self._in_chunk = self._left > 0
                line_end = min(len(part), max(0, 2 - self._left))  # it is no part of the data
                self._take(part[: len(part) - line_end] if line_end else part)
                continue
            end = raw.find(b"\r\n", at)
            if end < 0:
                break
            length = self._chunk_length(raw[at:end])
            if length == 0:
                if raw.find(b"\r\n\r\n", end) < 0:
                    break  # trailers, or the last line end, are still to come
                self._finish()
                return
            at = end + 2
            self._left, self._in_chunk = length + 2, True
        self._raw = bytearray(raw[at:])
        if len(self._raw) > HEAD_BYTES:
            raise WireError("a chunk's length, or trailers, without end", flooded=True)

    @staticmethod
    def _chunk_length(line: bytes) -> int:
        try:
            return int(line.partition(b";")[0].strip() or b"x", 16)
        except ValueError as error:
            raise WireError(f"no chunk: {line[:40]!r}") from error

    def _take(self, data: bytes) -> None:
        """Take a part of the body: events of a stream, or a body that is kept up to a limit."""
        assert self.head is not None  # noqa: S101 - read before
        if not self.head.event_stream or self.head.status != _OK:
            self.body += data[: max(0, KEPT_BODY_BYTES - len(self.body))]
            return
        text = self._event + data if self._event else data
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        *events, self._event = text.split(b"\n\n")
        if len(self._event) > self._event_limit:
            raise WireError("an event without end", flooded=True)
        assert self._on_event is not None  # noqa: S101 - sent before
        for event in events:
            if event.startswith(b"data:"):
                self._on_event(event[5:].strip() if b"\n" not in event else _joined(event))
            elif b"data:" in event:
                self._on_event(_joined(event))

    def _finish(self) -> None:
        done, self.done = self.done, None
        self.used = True
        if self.head is not None and (self.head.close or (not self.head.chunked and self.head.length is None)):
            self.close()
        if done is not None and not done.done():
            done.set_result(None)

    def _fail(self, error: Exception) -> None:
        done, self.done = self.done, None
        self.close()
        if done is not None and not done.done():
            done.set_exception(error)


def _joined(event: bytes) -> bytes:
    """Return the data of an event of several lines; comments and names are left out."""
    lines = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines)
