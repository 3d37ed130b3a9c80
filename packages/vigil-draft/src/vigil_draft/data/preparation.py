"""A whole preparation: read, look, ask, write. What `vigil draft prepare` does, as one function."""

import asyncio
import datetime as dt
import platform
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from vigil import __version__ as vigil_version
from vigil.bench.client import client_of, place_of
from vigil.bench.provenance import server_facts
from vigil.bench.reply import Limits
from vigil.bench.target import served
from vigil.errors import MeasureError, UsageError
from vigil.screen import hide_in_command
from vigil_draft import __version__
from vigil_draft.data import asked as records
from vigil_draft.data import conversations
from vigil_draft.data.journal import Journal
from vigil_draft.data.prepare import GOES_ON, Preparing, Sampling
from vigil_draft.data.probe import Known, probe
from vigil_draft.data.shards import Split, write_sides
from vigil_draft.data.template import Target, resolve
from vigil_draft.data.writing import Room

PATIENCE = Limits(silence_s=900.0, whole_s=1800.0)
"""An answer that is not streamed is silent until it is whole, its time in the server's queue included."""
CONVENTIONS = (
    "token ids of the target's tokenizer; loss_mask is true on what the target wrote, its end token included, and false on the"
    " prompt's; documents stand one after another and never see each other"
)


class Server(Protocol):
    """What is known of a server before it is asked."""

    url: str
    engine: str | None
    model: str | None


Find = Callable[[], AbstractAsyncContextManager[Server]]
"""Gives the server while it is needed: one that is there, or one that is started for it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. `target`: a folder or a name; `key`: shown and kept nowhere."""

    target: str
    prompts: tuple[Path, ...]
    out: Path
    max_tokens: int = 512
    length: int = 2048
    temperature: float = 0.0
    keep_answers: bool = False
    concurrency: int = 64
    held_out: float = 0.05
    seed: int = 0
    model: str | None = None
    key: str | None = None
    command: tuple[str, ...] = ()
    limits: Limits = PATIENCE


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """Who hears of it: `tell` what a user should know; `show` is given what says how far it is, until it is cancelled."""

    tell: Callable[[str], None]
    show: Callable[[Callable[[], str]], Coroutine[None, None, None]]


class _Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What was read before anything is asked. `before`: the record of earlier runs."""

    settings: Settings
    target: Target
    read: conversations.Read
    today: str
    before: records.Record | None

    def asked(self, server: dict[str, Any]) -> records.Asked:
        """Return what decides the result."""
        one = self.settings
        return records.Asked(
            prompts=self.read.digest,
            target=self.target.origin(),
            server=server,
            max_tokens=one.max_tokens,
            length=one.length,
            temperature=one.temperature,
            held_out=one.held_out,
            keep_answers=one.keep_answers,
            seed=one.seed,
            today=self.today,
        )


async def prepare(settings: Settings, find: Find | None, audience: Audience) -> dict[str, Any]:
    """Prepare training data and return what was counted, side by side. `find` None: the files' own answers are kept.

    Raises:
        UsageError: Something cannot be as it was asked for.
        UnreachableError: The server died; what it answered is kept.
        MeasureError: It fails, or the disk does.

    """
    inputs = _read(settings)
    journal = Journal.open(settings.out)
    try:
        if journal.at and inputs.before is None:
            raise UsageError(
                f"--out {settings.out} holds answers, and no {records.NAME} that says of what: give another --out"
            )
        work = Preparing(inputs.read.conversations, inputs.target, journal, _sampling(settings))
        record = await _filled(inputs, work, find, audience)
        sides = _written(settings, work, record)
    finally:
        journal.close()
    record.counts = {**sides, "doubles": inputs.read.doubles}
    records.keep(settings.out, record)
    return sides


def _read(settings: Settings) -> _Inputs:
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {settings.out}: {error.strerror}") from error
    before = records.recall(settings.out)
    today = before.asked.today if before else dt.datetime.now(dt.UTC).date().isoformat()
    target = Target(resolve(settings.target), today)
    read = conversations.read(list(settings.prompts))
    return _Inputs(settings=settings, target=target, read=read, today=today, before=before)


async def _filled(inputs: _Inputs, work: Preparing, find: Find | None, audience: Audience) -> records.Record:
    """Have the journal filled, and return the record."""
    settings, before = inputs.settings, inputs.before
    if find is None:
        record = records.begin(settings.out, inputs.asked({}), _run(settings, {}))
        work.keep_answers()
        return record
    if before is not None and work.progress.done == work.progress.total:  # no server is needed for what is answered
        return records.begin(settings.out, inputs.asked(before.asked.server), _run(settings, {}))
    async with find() as server:
        return await _answered(inputs, server, work, audience)


async def _answered(inputs: _Inputs, server: Server, work: Preparing, audience: Audience) -> records.Record:
    """Look at the server, and have it answer what is missing."""
    settings = inputs.settings
    async with client_of(place_of(server.url, settings.key), settings.limits) as client:
        found = await served(client, server.url, settings.model or server.model, server.engine)
        if found.context is not None and found.context < settings.length:
            raise UsageError(
                f"--length {settings.length} is more than the context of {found.context} tokens of {found.model}"
            )
        known = await probe(client, found, work.target)
        for note in known.notes:
            audience.tell(note)
        told = {"url": server.url, "settings": await server_facts(client, found), "notes": known.notes}
        record = records.begin(settings.out, inputs.asked(_said(known)), _run(settings, told))
        if work.progress.done:
            audience.tell(f"{work.progress.done:,} of {work.progress.total:,} prompts are answered already")
        showing = asyncio.create_task(audience.show(work.progress.line))
        try:
            await work.ask(client, known, settings.concurrency)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            audience.tell(work.progress.line())
    return record


def _written(settings: Settings, work: Preparing, record: records.Record) -> dict[str, Any]:
    provenance = {
        "made_by": f"vigil-draft {__version__}",
        "conventions": CONVENTIONS,
        "asked": msgspec.to_builtins(record.asked),
        "runs": record.runs,
    }
    split = Split(share=settings.held_out, seed=settings.seed)
    try:
        return write_sides(settings.out, work.conversations, work.journal, split, provenance)
    except OSError as error:
        raise MeasureError(f"--out {settings.out}: {error.strerror}; {GOES_ON}") from error


def _sampling(settings: Settings) -> Sampling:
    room = Room(answer=settings.max_tokens, document=settings.length)
    return Sampling(room=room, temperature=settings.temperature, seed=settings.seed)


def _said(known: Known) -> dict[str, Any]:
    return {"model": known.served.model, "engine": known.served.engine, "answers": known.dialect.words}


def _run(settings: Settings, server: dict[str, Any]) -> dict[str, Any]:
    versions = {"vigil": vigil_version, "vigil_draft": __version__, "python": platform.python_version()}
    try:
        from tokenizers import __version__ as tokenizers_version  # noqa: PLC0415 - an extra

        versions["tokenizers"] = tokenizers_version
    except ImportError:
        pass
    return {"command": list(hide_in_command(settings.command)), "versions": versions, "server": server}
