"""A whole verification: inspect, serve, ask, judge. What `vigil draft verify` does, as one function."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from vigil.bench.client import client_of, place_of
from vigil.bench.provenance import server_facts
from vigil.bench.reply import Limits
from vigil.bench.target import served
from vigil.errors import MeasureError
from vigil_draft.data import conversations
from vigil_draft.data.probe import probe
from vigil_draft.data.template import Target
from vigil_draft.verify.judging import Length, Word, judge, length_of
from vigil_draft.verify.measuring import Asking, measure
from vigil_draft.verify.serving import differences, findings

PROMPTS = Path(__file__).with_name("prompts.txt")
PATIENCE = Limits(silence_s=900.0, whole_s=1800.0)


class Lifted(Protocol):
    """A server that was brought up, or was not: then `url` is None and `cause` tells why."""

    url: str | None
    engine: str | None
    model: str | None
    key: str | None

    async def cause(self) -> Any:
        """Return what became of it."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is verified, and against which promise."""

    draft: Path
    target: Path
    engine: str
    steps: int
    prompts: tuple[Path, ...] = (PROMPTS,)
    most_prompts: int = 200
    promised: Length | None = None
    asking: Asking = Asking()


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, with all that a reader needs to see it again."""

    schema: int = 1
    word: Word
    text: str
    reasons: tuple[str, ...]
    live: Length | None
    promised: Length | None
    steps: int
    engine: str
    version: str | None
    answers: int
    tokens: int
    source: str
    notes: tuple[str, ...] = ()


async def verify(wanted: Wanted, lift: Callable[[], AbstractAsyncContextManager[Lifted]]) -> Verified:
    """Serve the draft, measure and judge it.

    Raises:
        UsageError: Something cannot be as it was asked for.
        MeasureError: The server did not come up, with what would explain it, or it does not tell of its steps.

    """
    target = Target(wanted.target)
    prompts = conversations.read(list(wanted.prompts)).conversations[: wanted.most_prompts]
    async with lift() as server:
        if server.url is None:
            raise MeasureError(await _not_up(wanted, server))
        async with client_of(place_of(server.url, server.key), PATIENCE) as client:
            found = await served(client, server.url, server.model, server.engine)
            known = await probe(client, found, target)
            facts = await server_facts(client, found)
            measured = await measure(client, known, target, prompts, wanted.asking)
    version = facts.get("version")
    version = version if isinstance(version, str) else None
    live = length_of(measured.parts)
    judged = judge(live, wanted.promised, _reasons(wanted, target, version))
    return Verified(
        word=judged.word,
        text=judged.text,
        reasons=judged.reasons,
        live=live,
        promised=wanted.promised,
        steps=wanted.steps,
        engine=wanted.engine,
        version=version,
        answers=measured.answers,
        tokens=measured.tokens,
        source=measured.source,
        notes=known.notes,
    )


def _reasons(wanted: Wanted, target: Target, version: str | None) -> tuple[str, ...]:
    wrong = findings(str(wanted.draft), str(wanted.target), wanted.engine, version)
    return (*wrong, *differences(wanted.draft, target, wanted.asking.temperature))


async def _not_up(wanted: Wanted, server: Lifted) -> str:
    """Return in a line why it does not serve."""
    cause = await server.cause()
    text = f"{cause.verdict}: {cause.text}" if cause is not None else "it did not come up"
    wrong = findings(str(wanted.draft), str(wanted.target), wanted.engine, None)
    return "; ".join([f"the server with the draft does not serve ({text})", *wrong[:1]])
