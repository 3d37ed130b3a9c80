"""One question to a server of states, and its answer as a value; what is none is an error of one line."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec
import torch

from vigil.bench.answered import fail, settle
from vigil.bench.client import Client
from vigil.bench.reply import Failure, Reply
from vigil.bench.target import Target as Server
from vigil.bench.wire import Connection
from vigil.errors import MeasureError, UsageError, VigilError

Kind = TypeVar("Kind")
BUSY_TRIES, BUSY_S = 6, 2.0
DEAD = frozenset({Failure.UNREACHABLE, Failure.DROPPED, Failure.BROKEN, Failure.SILENT})
"""vLLM answers 500 once its engine is dead, before it is gone itself."""


class GoneError(VigilError):
    """The server does not answer any more, or with its own faults alone."""


@dataclass(frozen=True)
class Given:
    """What a server gave for a document: states [T, A+1, H] in bf16, and the token that it would say next."""

    states: torch.Tensor
    following: int


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What is wanted of a target: its boundaries, and its own numbers."""

    boundaries: tuple[int, ...]
    layers: int
    width: int

    def picked(self, states: torch.Tensor, given: tuple[int, ...], last: torch.Tensor | None = None) -> torch.Tensor:
        """Return our order of states [T, A+1, H] out of a server's, which are at the boundaries `given`."""
        found = [states[:, given.index(each)] for each in self.boundaries]
        return torch.stack([*found, states[:, given.index(self.layers)] if last is None else last], dim=1)


class Engine(Protocol):
    """How an engine is asked for states."""

    flags: str
    """What a server must be started with, for people."""

    def arguments(self) -> list[str]:
        """Return the flags of a server that is started for it."""

    async def look(self, client: Client, server: Server, longest: int) -> str | None:
        """Refuse a server that cannot give such states of documents so long; return its version where it says it."""

    async def of(self, client: Client, server: Server, ids: list[int]) -> Given:
        """Ask for the states of a document."""


async def asked(client: Client, server: Server, path: str, body: dict[str, Any], kind: type[Kind]) -> Kind:
    """Ask for a JSON object of a kind; wait where the server is busy.

    Raises:
        UsageError: The server refuses such questions.
        GoneError: It does not answer, or tells of a fault of its own.
        MeasureError: It answers with something else.

    """
    found: list[Kind] = []
    decode = msgspec.json.Decoder(kind).decode

    def judge(connection: Connection, reply: Reply) -> None:
        if settle(connection, reply):
            try:
                found.append(decode(bytes(connection.body)))
            except (msgspec.DecodeError, RecursionError) as error:
                fail(reply, Failure.GARBLED, f"an answer that is none: {error}")

    message = msgspec.json.encode(body)
    for number in range(BUSY_TRIES):
        reply = await client.ask(path, message, judge)
        if reply.failure is not Failure.THROTTLED:
            break
        await asyncio.sleep(reply.retry_after_s or BUSY_S * 2**number)
    if found and reply.failure is None:
        return found[0]
    if reply.failure is Failure.REFUSED:
        raise UsageError(f"{server.url} refuses to give states: {reply.detail}")
    if reply.failure in DEAD:
        raise GoneError(f"{server.url} gives no states any more ({reply.failure}: {reply.detail})")
    raise MeasureError(f"{server.url} gave no states ({reply.failure}): {reply.detail}")


def must_be_whole(server: Server, wanted: int, counted: int | None) -> None:
    """Refuse an answer for another number of tokens than was asked for."""
    if counted is not None and counted != wanted:
        raise UsageError(f"{server.url} read {counted} tokens of a document of {wanted}: it cuts or adds to prompts")


def must_be_numbers(server: Server, states: torch.Tensor) -> None:
    """Refuse states that are no numbers."""
    if not bool(torch.isfinite(states).all()):
        raise MeasureError(f"{server.url} gave states that are no numbers (NaN or infinite)")
