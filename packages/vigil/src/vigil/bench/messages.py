"""What the processes of one client say to each other: MessagePack behind its length, over a socket that both inherit."""

import asyncio
import struct
from array import array
from typing import Any, TypeVar

import msgspec

from vigil.bench.client import Place
from vigil.bench.load import Share
from vigil.bench.prompts import Prompt
from vigil.bench.reply import Failure, Reply
from vigil.bench.settings import Point, Settings

Kind = TypeVar("Kind")
_LENGTH = struct.Struct("!I")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do. It holds the key, so it goes by the socket and never by a command line."""

    place: Place
    settings: Settings
    model: str
    words: int
    prompts: tuple[Prompt, ...] | None
    point: Point
    first_index: int
    share: Share = Share()


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process could begin."""


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Begin at a moment of the clock that all processes of a host share (`time.perf_counter`: CLOCK_MONOTONIC)."""

    at_s: float


class End(msgspec.Struct, frozen=True, tag=True):
    """Send nothing more. `cut`: give up what is open, and why."""

    cut: str | None = None


class Heard(msgspec.Struct, frozen=True, tag=True):
    """What came since the last word: the events of each tenth of a second, and requests that are over (see `packed`)."""

    until_s: float
    bins: list[tuple[int, int]]
    replies: list[list[Any]]


class Ended(msgspec.Struct, frozen=True, tag=True):
    """All is over. `beats`: the heart's record."""

    beats: tuple[bytes, bytes, bytes]


Order = Begin | End
Word = Ready | Heard | Ended
JOB: msgspec.msgpack.Decoder[Job] = msgspec.msgpack.Decoder(Job)
ORDER: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
WORD: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def packed(reply: Reply) -> list[Any]:
    """Return a reply as plain values."""
    values = [getattr(reply, name) for name in Reply.__slots__]
    return [one.tobytes() if isinstance(one, array) else one for one in values]


def unpacked(values: list[Any]) -> Reply:
    """Return the reply that was packed."""
    reply = Reply(0.0)
    for name, value in zip(Reply.__slots__, values, strict=True):
        setattr(reply, name, value)
    reply.arrivals = array("d")
    reply.arrivals.frombytes(values[Reply.__slots__.index("arrivals")])
    reply.failure = Failure(reply.failure) if reply.failure is not None else None
    return reply


def framed(message: msgspec.Struct) -> bytes:
    """Return a message as it goes over the socket."""
    data = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(data)) + data


async def heard(reader: asyncio.StreamReader, kind: msgspec.msgpack.Decoder[Kind]) -> Kind:
    """Return the next message; raise `IncompleteReadError` or `ConnectionError` where the other side is gone."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return kind.decode(await reader.readexactly(length))
