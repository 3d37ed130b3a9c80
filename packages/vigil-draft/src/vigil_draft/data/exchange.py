"""One question and its answer, over the client of `vigil bench`; what is no answer is a failure of the reply."""

from typing import Any

import msgspec

from vigil.bench.answered import fail, settle
from vigil.bench.client import Client
from vigil.bench.reply import Failure, Reply
from vigil.bench.wire import Connection
from vigil_draft.data.dialects import Answer, Ask, Dialect

_decode = msgspec.json.Decoder().decode


async def post(client: Client, path: str, asked: dict[str, Any]) -> tuple[Reply, dict[str, Any] | None]:
    """Ask for a JSON object; None where the reply tells of a failure."""
    found: list[dict[str, Any]] = []

    def judge(connection: Connection, reply: Reply) -> None:
        if not settle(connection, reply):
            return
        try:
            body = _decode(bytes(connection.body))
        except (msgspec.DecodeError, RecursionError) as error:
            fail(reply, Failure.GARBLED, f"an answer that is none: {error}")
            return
        if isinstance(body, dict):
            found.append(body)
        else:
            fail(reply, Failure.GARBLED, "an answer that is no object")

    reply = await client.ask(path, msgspec.json.encode(asked), judge)
    return reply, found[0] if found and reply.failure is None else None


async def exchange(client: Client, dialect: Dialect, ask: Ask) -> tuple[Reply, Answer | None]:
    """Ask a question; None where the reply tells of a failure."""
    reply, body = await post(client, dialect.path, dialect.body(ask))
    answer = dialect.answer(body) if body is not None else None
    if body is not None and answer is None:
        fail(
            reply, Failure.GARBLED, f"no answer is in it: {msgspec.json.encode(body)[:120].decode('utf-8', 'replace')}"
        )
    return reply, answer
