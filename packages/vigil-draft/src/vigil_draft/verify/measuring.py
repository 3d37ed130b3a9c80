"""Ask a server that speculates, and take down how many tokens each step of the target brought.

SGLang tells with each answer in how many steps it was made (`meta_info.spec_verify_ct`): each answer is a part. vLLM and
llama-server count over all answers in their metrics (drafts made, draft tokens accepted): each few answers are a part.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from vigil.bench.client import Client
from vigil.bench.gauges import MOST_BYTES, Gauges, read
from vigil.errors import MeasureError
from vigil_draft.data.conversations import Conversation
from vigil_draft.data.dialects import Answer, Ask
from vigil_draft.data.exchange import exchange
from vigil_draft.data.probe import Known
from vigil_draft.data.template import Target, TemplateError
from vigil_draft.verify.judging import Part

A_PART = 8
SETTLES, SETTLE_S = 25, 0.2
_OK = 200


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """How it is asked: greedy by default, answers end where the target ends them."""

    most_tokens: int = 256
    temperature: float = 0.0
    at_once: int = 4


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `source`: where the steps were read."""

    parts: tuple[Part, ...]
    answers: int
    tokens: int
    source: str


async def measure(
    client: Client, known: Known, target: Target, prompts: Sequence[Conversation], asking: Asking
) -> Measured:
    """Have the prompts answered, and return the steps; raise `MeasureError` where the server fails or does not tell."""
    asks = _asks(known, target, prompts, asking)
    parts: list[Part] = []
    answers: list[Answer] = []
    names = known.served.table.metrics
    before = await _settled(client, known)
    for at in range(0, len(asks), A_PART):
        some = await _answered(client, known, asks[at : at + A_PART], asking.at_once)
        answers += some
        told = [one for one in some if one.steps]
        if told:
            # The first token comes of reading the prompt, not of a step.
            parts += [Part(tokens=len(one.ids or ()) - 1, steps=one.steps or 0) for one in told]
            continue
        after = await _settled(client, known)
        if before is not None and after is not None:
            parts += _grown(before, after)
        before = after
    source = "each answer's own count of steps" if any(one.steps for one in answers) else f"{names.path} of the server"
    if before is None and not parts:
        raise MeasureError(f"{known.served.url} tells of no steps: neither with its answers nor at {names.path}")
    tokens = sum(len(one.ids or ()) for one in answers)
    return Measured(parts=tuple(parts), answers=len(answers), tokens=tokens, source=source)


def _asks(known: Known, target: Target, prompts: Sequence[Conversation], asking: Asking) -> list[Ask]:
    """Return a question for each prompt: its first turn."""
    found = []
    for number, one in enumerate(prompts):
        messages = [{"role": "system", "content": one.system}] if one.system is not None else []
        messages.append({"role": "user", "content": one.turns[0]})
        try:
            ids = target.prompt(messages)
        except TemplateError:
            continue
        found.append(
            Ask(
                model=known.served.model, ids=ids, messages=messages, max_tokens=asking.most_tokens,
                temperature=asking.temperature, seed=number,
            )
        )  # fmt: skip
    return found


async def _answered(client: Client, known: Known, asks: Sequence[Ask], at_once: int) -> list[Answer]:
    gate = asyncio.Semaphore(max(1, at_once))

    async def one(ask: Ask) -> Answer:
        async with gate:
            reply, answer = await exchange(client, known.dialect, ask)
        if answer is None:
            raise MeasureError(f"{known.served.url} did not answer ({reply.failure}): {reply.detail}")
        return answer

    return list(await asyncio.gather(*(one(ask) for ask in asks)))


async def _settled(client: Client, known: Known) -> Gauges | None:
    """Return the counters once two looks agree, since they lag behind the answers; None where there are none."""
    names = known.served.table.metrics
    if names.path is None:
        return None
    last: Gauges | None = None
    for _ in range(SETTLES):
        status, body = await client.get(names.path)
        now = read(body[:MOST_BYTES].decode("utf-8", "replace"), names) if status == _OK else None
        if now is None:
            return None
        if last is not None and (last.drafts, last.accepted) == (now.drafts, now.accepted):
            return now
        last = now
        await asyncio.sleep(SETTLE_S)
    return last


def _grown(before: Gauges, after: Gauges) -> list[Part]:
    """Return what the counters grew by, as a part; a counter that is there only from the first draft on began at 0."""
    if after.drafts is None or after.accepted is None:
        return []
    steps = after.drafts - (before.drafts or 0.0)
    accepted = after.accepted - (before.accepted or 0.0)
    return [Part(tokens=steps + accepted, steps=steps)] if steps > 0 and accepted >= 0 else []
