"""Look at a server before it is measured: what it serves, what requests it takes, how many words make a length."""

from typing import Any

import msgspec

from vigil.bench.answered import shown
from vigil.bench.client import Client
from vigil.bench.prompts import Prompt, longest, turned
from vigil.bench.reply import Failure, Reply
from vigil.bench.settings import Settings
from vigil.bench.work import Work
from vigil.engine_table import EngineTable
from vigil.engines import TABLES, table
from vigil.errors import MeasureError, UnreachableError, UsageError

MOST_NAMED = 5
TRIES = 6
CLOSE_ENOUGH = 0.01
TURN_TOKENS = 4
FIRST_TOKENS_A_WORD = 1.3
_OK, _LOCKED = 200, (401, 403)
_OWNERS = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp"}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it was found. `words`: in a made prompt; `input_tokens`: how many tokens the server counted of one."""

    url: str
    model: str
    engine: str = "generic"
    context: int | None = None
    words: int = 0
    input_tokens: int = 0
    ignore_eos: bool = True
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> EngineTable:
        """What is known of its engine."""
        return TABLES[self.engine]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be measured of a server. `model` and `engine` None: what it says itself."""

    settings: Settings
    model: str | None = None
    engine: str | None = None
    prompts: tuple[Prompt, ...] | None = None


class _Listed(msgspec.Struct, frozen=True):
    id: str
    owned_by: Any = None
    max_model_len: Any = None
    meta: Any = None


class _Models(msgspec.Struct, frozen=True):
    data: list[_Listed] = []


async def look(client: Client, url: str, wanted: Wanted) -> Target:
    """Return the server as it is; raise in one line where it cannot be measured like this.

    `UsageError`: the model is not listed, the lengths do not fit, it refuses such requests. `UnreachableError`: no answer.
    `MeasureError`: it answers, but not with counted tokens.
    """
    settings = wanted.settings
    target = await served(client, url, wanted.model, wanted.engine)
    length = settings.most_output + (0 if wanted.prompts else settings.most_input)
    if target.context is not None and length > target.context:
        raise UsageError(
            f"{settings.most_input} tokens in and {settings.most_output} out do not fit the context of {target.context}"
            f" tokens of {shown(target.model)}: give a smaller --input or --output"
        )
    target = await _check_eos(client, wanted, target)
    return target if wanted.prompts else await _fitted(client, wanted, target)


async def served(client: Client, url: str, model: str | None = None, engine: str | None = None) -> Target:
    """Return what a server says that it serves, without asking it for a token; raises as `look` does."""
    one = _chosen(await _models(client, url), model, url)
    engine = engine or _OWNERS.get(str(one.owned_by).lower(), "generic")
    return Target(url=url, model=one.id, engine=table(engine).name, context=_context(one))


async def _models(client: Client, url: str) -> list[_Listed]:
    status, body = await client.get("/v1/models")
    if status == 0 and body:
        raise MeasureError(f"{url}/v1/models answers with nothing usable: {shown(body.decode('utf-8', 'replace'))}")
    if status == 0:
        raise UnreachableError(f"{url} does not answer: is it up? (vigil wait {url})")
    if status in _LOCKED:
        raise UsageError(f"{url} wants a key ({status}): give --api-key-env with the name of a variable that holds it")
    try:
        return msgspec.json.decode(body, type=_Models).data if status == _OK else []
    except (msgspec.DecodeError, RecursionError):
        return []


def _chosen(listed: list[_Listed], model: str | None, url: str) -> _Listed:
    if not listed:
        if model is not None:
            return _Listed(id=model)
        raise UsageError(f"{url} lists no model at /v1/models: give its name by --model")
    for one in listed:
        if model is None or one.id == model:
            return one
    names = ", ".join(shown(one.id) for one in listed[:MOST_NAMED])
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    raise UsageError(f"{url} does not list the model {model!r}; it lists {names}{more}")


def _context(one: _Listed) -> int | None:
    """Return the longest context that the server states (vLLM and SGLang: `max_model_len`; llama-server: its `meta`)."""
    meta = one.meta if isinstance(one.meta, dict) else {}
    stated = next((value for value in (one.max_model_len, meta.get("n_ctx")) if value is not None), None)
    return stated if isinstance(stated, int) and stated > 0 else None


async def _check_eos(client: Client, wanted: Wanted, target: Target) -> Target:
    """Ask once, of a file's prompts the longest; where the server does not take `ignore_eos`, answers end naturally."""
    reply = await _try(client, wanted, target, words=8)
    if reply.failure is Failure.REFUSED and wanted.settings.ignore_eos and "ignore_eos" in reply.detail:
        note = "the server does not take ignore_eos: answers end where the model ends them"
        target = msgspec.structs.replace(target, ignore_eos=False, notes=(*target.notes, note))
        reply = await _try(client, wanted, target, words=8)
    _must_be_good(reply, wanted, target)
    if wanted.prompts is not None:
        _must_fit(reply.input_tokens, longest(wanted.prompts).output_tokens or wanted.settings.most_output, target)
    return target


def _must_fit(input_tokens: int, output_tokens: int, target: Target) -> None:
    """Raise in one line where the longest prompt and its answer are longer than the context, beyond what a turn may add."""
    if target.context is not None and input_tokens + output_tokens > target.context + TURN_TOKENS:
        raise UsageError(
            f"the longest prompt of --prompts has {input_tokens} tokens, and {output_tokens} out do not fit the context of"
            f" {target.context} tokens of {shown(target.model)} with it: give a smaller --output, or leave it out"
        )


async def _try(client: Client, wanted: Wanted, target: Target, words: int, index: int = -1) -> Reply:
    """Ask for two tokens."""
    asked = msgspec.structs.replace(wanted.settings, output_tokens=2, range_ratio=0.0, ignore_eos=target.ignore_eos)
    prompts = (
        (msgspec.structs.replace(turned(longest(wanted.prompts)), output_tokens=None),) if wanted.prompts else None
    )
    work = Work(asked, target.model, words, prompts)
    return await client.ask(work.path, work.body(index))


def _must_be_good(reply: Reply, wanted: Wanted, target: Target) -> None:
    """Raise in one line where a first request was not answered well."""
    match reply.failure:
        case None:
            return
        case Failure.UNREACHABLE:
            raise UnreachableError(f"{target.url}: {reply.detail}")
        case Failure.UNCOUNTED:
            raise MeasureError(
                f"{target.url} does not say how many tokens it generated (no usage with stream_options.include_usage):"
                " nothing can be measured"
            )
        case Failure.REFUSED if "context" in reply.detail.lower():
            which = (
                "the longest prompt of --prompts"
                if wanted.prompts
                else f"the prompt ({wanted.settings.input_tokens} in)"
            )
            raise UsageError(f"{which} is longer than the server's context: {reply.detail}")
        case Failure.REFUSED:
            raise UsageError(f"{target.url} refuses the request: {reply.detail}")
        case _:
            raise MeasureError(
                f"{target.url} answered a first request with nothing usable ({reply.failure}): {reply.detail}"
            )


async def _fitted(client: Client, wanted: Wanted, target: Target) -> Target:
    """Find how many words the server counts as the length asked for; its own count decides, not a tokenizer of ours."""
    settings = wanted.settings
    words = max(1, round(settings.input_tokens / FIRST_TOKENS_A_WORD))
    best: tuple[int, int, int] | None = None
    for number in range(TRIES):
        reply = await _try(client, wanted, target, words, index=-2 - number)
        _must_be_good(reply, wanted, target)
        counted = reply.input_tokens
        if counted <= 0:
            raise MeasureError(f"{target.url} does not count the tokens of prompts: give --prompts FILE")
        off = abs(counted - settings.input_tokens)
        best = min(best or (off, words, counted), (off, words, counted))
        if off <= max(1.0, CLOSE_ENOUGH * settings.input_tokens):
            break
        following = max(1, round(words * settings.input_tokens / counted))
        if following == words:
            break
        words = following
    assert best is not None  # noqa: S101 - one try at least
    return msgspec.structs.replace(target, words=best[1], input_tokens=best[2])
