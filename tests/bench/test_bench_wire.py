"""The reader of HTTP/1.1 and of event streams, fed in pieces of every size."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vigil.bench.wire import HEAD_BYTES, Connection, WireError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def feed(
    *pieces: bytes, limit: int = 1 << 20, event_limit: int = 1 << 16, ends: bool = False
) -> tuple[list[bytes], Connection]:
    """Feed an answer; return its events, and the connection. Raises what the answer failed with."""

    async def go() -> tuple[list[bytes], Connection]:
        connection, events = Connection(), []
        connection.connection_made(Wire())
        done = connection.send(b"", events.append, limit, event_limit)
        for piece in pieces:
            if not done.done():
                connection.data_received(piece)
        if ends:
            connection.connection_lost(None)
        assert done.done()
        await done
        return events, connection

    return asyncio.run(go())


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


@given(st.lists(st.integers(1, 40), max_size=60))
def test_wire_reads_the_same_events_however_the_bytes_come(sizes: list[int]) -> None:
    answer = HEAD + chunks(
        b'data: {"a": 1}\n\ndata: {"b"', b": 2}\n", b"\n: a comment\n\nevent: x\r\ndata: c\r\n\r\n", b"data: [DONE]\n\n"
    )
    events, connection = feed(*cut(answer, sizes))

    assert events == [b'{"a": 1}', b'{"b": 2}', b"c", b"[DONE]"]
    assert connection.usable


def test_wire_reads_byte_by_byte() -> None:
    answer = HEAD + chunks(b"data: 1\n\n", b"data: 2\n\n")
    events, _ = feed(*(answer[at : at + 1] for at in range(len(answer))))

    assert events == [b"1", b"2"]


def test_wire_keeps_the_body_of_a_refusal() -> None:
    _, connection = feed(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\noh", b" n")

    assert connection.head is not None
    assert (connection.head.status, bytes(connection.body)) == (400, b"oh n")


def test_wire_takes_the_end_of_the_connection_for_the_end_of_an_answer_without_length() -> None:
    events, connection = feed(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", ends=True)

    assert (events, connection.usable) == ([b"1"], False)


def test_wire_passes_over_an_interim_answer() -> None:
    events, _ = feed(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + chunks(b"data: 1\n\n"))

    assert events == [b"1"]


def test_wire_does_not_use_again_what_the_server_will_close() -> None:
    _, connection = feed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    assert not connection.usable


@pytest.mark.parametrize(
    ("pieces", "flooded"),
    [
        ([b"\x00\xff\r\n\r\n"], False),
        ([HEAD, b"zz\r\n"], False),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_BYTES, b"x"], True),
        ([HEAD, b"1" * (HEAD_BYTES + 1)], True),
        ([HEAD, b"20000\r\n" + b"x" * 0x20000], True),
        ([HEAD, b"ffffffff\r\n" + b"\n\n" * (1 << 19), b"\n\n"], True),
    ],
)
def test_wire_refuses_what_is_no_http_and_what_never_ends(pieces: list[bytes], flooded: bool) -> None:  # noqa: FBT001
    with pytest.raises(WireError) as error:
        feed(*pieces)

    assert error.value.flooded is flooded


def test_wire_tells_of_a_connection_that_ended_midway() -> None:
    with pytest.raises(ConnectionError):
        feed(HEAD + b"9\r\ndata: 1\n", ends=True)
