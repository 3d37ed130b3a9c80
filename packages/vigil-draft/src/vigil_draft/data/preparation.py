"""A whole preparation: read, look, ask, write. What `vigil draft prepare` does, as one function."""

import asyncio
import datetime
import platform
from collections.abc import Awaitable, Callable
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
from vigil_draft.data.shards import write_sides
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


Tell = Callable[[str], None]
Show = Callable[[Callable[[], str]], Awaitable[None]]


async def prepare(
    settings: Settings, find: Callable[[], Awaitable[Server]] | None, tell: Tell, show: Show
) -> dict[str, Any]:
    """Prepare training data and return what was counted, side by side.

    `find` gives the server, None where the files' answers are kept; `tell` hears what a user should know, `show` is given what
    says how far it is.

    Raises:
        UsageError: Something cannot be as it was asked for.
        UnreachableError: The server died; what it answered is kept.
        MeasureError: It fails, or the disk does.

    """
    out = _out(settings.out)
    before = records.recall(out)
    today = before.asked.today if before else datetime.datetime.now(datetime.UTC).date().isoformat()
    target = Target(resolve(settings.target), today)
    read = conversations.read(list(settings.prompts))
    journal = Journal.open(out)
    try:
        work = Preparing(read.conversations, target, journal, _sampling(settings))
        if find is None:
            record = records.begin(out, _asked(settings, read.digest, target, {}, today), _run(settings, {}))
            work.keep_answers()
        else:
            record = await _answered(settings, await find(), work, read.digest, today, tell, show)
        counts = _written(out, work, settings, record)
    finally:
        journal.close()
    record.counts = {**counts, "doubles": read.doubles}
    records.keep(out, record)
    return counts


async def _answered(
    settings: Settings, server: Server, work: Preparing, digest: str, today: str, tell: Tell, show: Show
) -> records.Record:
    """Look at the server, and have it answer what is missing."""
    async with client_of(place_of(server.url, settings.key), settings.limits) as client:
        found = await served(client, server.url, settings.model or server.model, server.engine)
        if found.context is not None and found.context < settings.length:
            raise UsageError(
                f"--length {settings.length} is more than the context of {found.context} tokens of {found.model}"
            )
        known = await probe(client, found, work.target)
        for note in known.notes:
            tell(note)
        facts = await server_facts(client, found)
        asked = _asked(settings, digest, work.target, _said(known), today)
        record = records.begin(
            settings.out, asked, _run(settings, {"url": server.url, "settings": facts, "notes": known.notes})
        )
        if work.progress.done:
            tell(f"{work.progress.done:,} of {work.progress.total:,} prompts are answered already")
        showing = asyncio.ensure_future(show(work.progress.line))
        try:
            await work.ask(client, known, settings.concurrency)
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
            tell(work.progress.line())
    return record


def _written(out: Path, work: Preparing, settings: Settings, record: records.Record) -> dict[str, Any]:
    provenance = {
        "made_by": f"vigil-draft {__version__}",
        "conventions": CONVENTIONS,
        "asked": msgspec.to_builtins(record.asked),
        "runs": record.runs,
    }
    try:
        return write_sides(out, work.conversations, work.journal, settings.held_out, settings.seed, provenance)
    except OSError as error:
        raise MeasureError(f"--out {out}: {error.strerror}; {GOES_ON}") from error


def _sampling(settings: Settings) -> Sampling:
    room = Room(answer=settings.max_tokens, document=settings.length)
    return Sampling(room=room, temperature=settings.temperature, seed=settings.seed)


def _said(known: Known) -> dict[str, Any]:
    return {"model": known.served.model, "engine": known.served.engine, "answers": known.dialect.words}


def _asked(settings: Settings, digest: str, target: Target, server: dict[str, Any], today: str) -> records.Asked:
    return records.Asked(
        prompts=digest,
        target=target.origin(),
        server=server,
        max_tokens=settings.max_tokens,
        length=settings.length,
        temperature=settings.temperature,
        held_out=settings.held_out,
        keep_answers=settings.keep_answers,
        seed=settings.seed,
        today=today,
    )


def _run(settings: Settings, server: dict[str, Any]) -> dict[str, Any]:
    versions = {"vigil": vigil_version, "vigil_draft": __version__, "python": platform.python_version()}
    try:
        from tokenizers import __version__ as tokenizers_version  # noqa: PLC0415 - an extra

        versions["tokenizers"] = tokenizers_version
    except ImportError:
        pass
    return {"command": list(hide_in_command(settings.command)), "versions": versions, "server": server}


def _out(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}") from error
    return path
