"""Extraction from a server: the same shards as from the target in process, many documents at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from vigil.bench.client import Client, client_of, place_of
from vigil.bench.reply import Limits
from vigil.bench.target import Target as Server
from vigil.bench.target import served
from vigil.errors import MeasureError, UsageError
from vigil_draft.data import prepared
from vigil_draft.states import files
from vigil_draft.states.asked import Asked, corpus_of, lengths_of
from vigil_draft.states.batch import Corpus
from vigil_draft.states.begin import begin
from vigil_draft.states.extract import Progress, foretell
from vigil_draft.states.part import NoPartError, Part
from vigil_draft.states.served.asking import Engine, Given, GoneError, Shape
from vigil_draft.states.served.opening import check, must_be_same
from vigil_draft.states.served.sglang import A_NUMBER_BYTES, SGLang
from vigil_draft.states.served.vllm import VLLM
from vigil_draft.states.target import default_boundaries, folder_of, shape_of

Found = TypeVar("Found")
TRIED = 8
"""Documents that are looked at before all."""
SILENCE_S, WHOLE_S = 900.0, 1800.0


class Lifted(Protocol):
    """A server that was brought up, or was there. `url` None: it does not serve."""

    url: str | None
    model: str | None
    key: str | None

    async def cause(self) -> Any:
        """Return what became of it."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How a server is asked. `handed`: where vLLM's connector writes."""

    asked: Asked
    handed: Path | None = None
    at_once: int = 8
    tell: Callable[[str], None] = print


def shape_for(asked: Asked) -> Shape:
    """Return what is wanted of a target."""
    layers, width = shape_of(asked.target)
    return Shape(boundaries=tuple(asked.boundaries or default_boundaries(layers)), layers=layers, width=width)


def engine_for(wanted: Wanted) -> Engine:
    """Return how the engine is asked; UsageError where something of it lacks."""
    shape = shape_for(wanted.asked)
    if wanted.asked.by == "vllm":
        if wanted.handed is None:
            raise UsageError("vLLM writes states into a folder: give it by --handed, as this machine sees it")
        return VLLM(shape, wanted.handed)
    if wanted.asked.by != "sglang":
        raise UsageError(f"{wanted.asked.by} gives no hidden states: vllm and sglang do")
    try:
        return SGLang(shape, Part(_needed(wanted.asked.target), shape.layers - 1, shape.layers))
    except NoPartError as error:
        raise UsageError(f"SGLang does not give the state after the last layer, and here {error}: take vLLM") from None


def _needed(target: str) -> Path:
    folder = folder_of(target)
    if folder is None:
        raise UsageError(f"--target {target}: no such folder, and no such model in the cache")
    return folder


async def extract_served(
    wanted: Wanted, lift: Callable[[], AbstractAsyncContextManager[Lifted]], free: int | None = None
) -> dict[str, Any]:
    """Extract what is not there yet, from a server; return the manifest.

    Raises:
        UsageError: Something cannot be as it was asked for: one line says what, and how the server must be started.
        MeasureError: The server does not come up, goes away, or gives what is no states. Finished shards are kept.

    """
    out = Path(wanted.asked.out)
    left = begin(wanted.asked, free)
    if left:
        engine = engine_for(wanted)
        async with lift() as server:
            if server.url is None:
                raise MeasureError(f"the server did not come up: {await _cause(server)}")
            try:
                await _from(wanted, engine, server, left)
            except GoneError as error:
                raise MeasureError(
                    f"{error}: {await _cause(server)}; finished shards are kept, the same command goes on"
                ) from None
    return files.read_manifest(out)


async def _cause(server: Lifted) -> str:
    found = await server.cause()
    return f"{found.verdict}: {found.text}" if found is not None else "no cause was found"


async def _from(wanted: Wanted, engine: Engine, up: Lifted, left: list[int]) -> None:
    assert up.url is not None  # noqa: S101 - it serves
    asked, shape = wanted.asked, shape_for(wanted.asked)
    docs = prepared.read(Path(asked.data))
    corpora = [corpus for shard in left if (corpus := corpus_of(docs, asked, shard))]
    lengths = lengths_of(corpora)
    longest = max(lengths, default=0)
    numbers = (len(shape.boundaries) + 1) * shape.width * longest
    limits = Limits(silence_s=SILENCE_S, whole_s=WHOLE_S, reply_bytes=numbers * A_NUMBER_BYTES + (4 << 20))
    async with client_of(place_of(up.url, up.key), limits) as client:
        server = await served(client, up.url, up.model, asked.by)
        if server.context is not None and server.context <= longest:
            raise UsageError(
                f"{up.url} has a context of {server.context} tokens, and documents have up to {longest}: give"
                f" --length {server.context - 1} or less"
            )
        version = await engine.look(client, server, longest)
        ask = _Asking(client, server, engine, wanted.at_once)
        if corpora:
            speed = await _open(wanted, ask, shape, _few(corpora[0]))
            wanted.tell(f"{asked.by} {version or ''}".strip())
            foretell(sum(lengths), speed)
        progress = Progress(len(left))
        for shard in left:
            await ask.shard(corpus_of(docs, asked, shard), Path(asked.out), shard, shard * asked.shard)
            progress.finished()


def _few(corpus: Corpus) -> list[list[int]]:
    """Return the token ids of the first few documents."""
    numbers = sorted(number for row in corpus.rows for number in row)[:TRIED]
    return [corpus.token_ids[slice(*corpus.span(number))].tolist() for number in numbers]


async def _open(wanted: Wanted, ask: _Asking, shape: Shape, documents: list[list[int]]) -> float:
    """Look at a few documents; return the tokens of a second that they came at."""
    once = await ask.of(documents[0])
    began = time.monotonic()
    given = await _together([ask.of(each) for each in documents])
    speed = sum(map(len, documents)) / (time.monotonic() - began)
    must_be_same(ask.server.url, once, given[0])
    try:
        upto = min(min(shape.boundaries) + 1, shape.layers)  # a layer more, to see which boundary is nearest
        part = Part(_needed(wanted.asked.target), 0, upto, words=True)
        wanted.tell(await check(ask.server.url, shape, part, documents, given))
    except NoPartError as error:
        wanted.tell(f"the server's states could not be held to the target's weights: {error}")
    return speed


class _Asking:
    """Asks for documents, so many at once and no more."""

    def __init__(self, client: Client, server: Server, engine: Engine, at_once: int) -> None:
        self.client, self.server, self.engine = client, server, engine
        self._gate = asyncio.Semaphore(at_once)

    async def of(self, ids: list[int]) -> Given:
        """Ask for one document."""
        async with self._gate:
            return await self.engine.of(self.client, self.server, ids)

    async def shard(self, corpus: Corpus | None, out: Path, shard: int, first: int) -> None:
        """Write the files of a shard whose first document has this number, and its record."""
        rows = corpus.rows if corpus is not None else []
        numbers = sorted(number for row in rows for number in row)
        entries = await _together([self._document(corpus, out, first, each) for each in numbers if corpus is not None])
        with files.kept_where_full(out):
            await asyncio.to_thread(files.finish_shard, out, shard, entries)

    async def _document(self, corpus: Corpus, out: Path, first: int, number: int) -> dict[str, Any]:
        part = slice(*corpus.span(number))
        tokens, mask = corpus.token_ids[part].clone(), corpus.loss_mask[part].clone()
        async with self._gate:
            given = await self.engine.of(self.client, self.server, tokens.tolist())
            with files.kept_where_full(out):
                return await asyncio.to_thread(files.write_document, out, first + number, given.states, tokens, mask)


async def _together(work: Sequence[Coroutine[Any, Any, Found]]) -> list[Found]:
    """Do all of it; the first failure ends the rest and is raised as itself."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def engine_of(url: str, model: str | None, key: str | None) -> str:
    """Return which engine a server says that it is."""
    async with client_of(place_of(url, key), Limits()) as client:
        return (await served(client, url, model)).engine


@asynccontextmanager
async def there(url: str, model: str | None, key: str | None) -> AsyncIterator[Lifted]:
    """Give a server that was there before us."""
    yield _There(url, model, key)


class _There:
    def __init__(self, url: str, model: str | None, key: str | None) -> None:
        self.url: str | None = url
        self.model, self.key = model, key

    async def cause(self) -> None:
        """Know nothing of what becomes of it."""
