"""One conversation becomes documents: turn by turn the target answers anew, or what the file says is kept. No HTTP here."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from vigil_draft.data.conversations import Conversation
from vigil_draft.data.dialects import Answer, Message
from vigil_draft.data.journal import Document, Entry
from vigil_draft.data.template import Target, TemplateError

Reply = Callable[[list[int], list[Message], int], Awaitable[Answer]]
"""Gives the target's answer to a prompt (as ids, and as messages), of so many tokens at most."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may be, in tokens: an answer, and a document with its prompt."""

    answer: int
    document: int


class _Draft:
    """Documents under way. Each turn goes on with the last one where its prompt begins with that, token by token."""

    def __init__(self) -> None:
        self.documents: list[Document] = []

    def add(self, prompt: list[int], ids: list[int]) -> None:
        span = (len(prompt), len(prompt) + len(ids))
        spans = [span]
        if self.documents and prompt[: len(self.documents[-1].ids)] == self.documents[-1].ids:
            spans = [*self.documents.pop().spans, span]
        self.documents.append(Document(ids=prompt + ids, spans=spans))


async def write(number: int, one: Conversation, target: Target, room: Room, reply: Reply) -> Entry:
    """Return what a conversation becomes where the target answers it anew; `reply` raises what it likes."""
    draft, messages, cut = _Draft(), _opening(one), None
    for turn in one.turns:
        messages.append({"role": "user", "content": turn})
        try:
            prompt = target.prompt(messages)
        except TemplateError as error:
            return Entry(n=number, documents=draft.documents, lost=None if draft.documents else f"template: {error}")
        left = room.document - len(prompt)
        if left < 1:
            return _ended(number, draft, "too long", cut or "document")
        answer = await reply(prompt, messages, min(room.answer, left))
        ids = ids_of(answer, target)[:left]
        if not answer.text.strip() or not ids:
            return _ended(number, draft, "empty", cut)
        if not answer.finished:
            cut = "answer" if left >= room.answer else "document"
        draft.add(prompt, ids)
        messages.append({"role": "assistant", "content": answer.text})
    return Entry(n=number, documents=draft.documents, cut=cut)


def keep(number: int, one: Conversation, target: Target, room: Room) -> Entry:
    """Return what a conversation becomes with the answers that its file holds."""
    draft, messages, cut = _Draft(), _opening(one), None
    for turn, text in zip(one.turns, one.answers, strict=False):
        messages.append({"role": "user", "content": turn})
        try:
            prompt = target.prompt(messages)
            whole = target.prompt([*messages, {"role": "assistant", "content": text}], answering=False)
        except TemplateError as error:
            return Entry(n=number, documents=draft.documents, lost=None if draft.documents else f"template: {error}")
        messages.append({"role": "assistant", "content": text})
        if not text.strip():
            return _ended(number, draft, "empty", cut)
        ids = _answered(prompt, whole, text, target)
        left = room.document - len(prompt)
        if left < 1:
            return _ended(number, draft, "too long", "document")
        if len(ids) > left:
            ids, cut = ids[:left], "document"
        draft.add(prompt, ids)
    return _ended(number, draft, "no answer in the file", cut)


def _opening(one: Conversation) -> list[Message]:
    return [{"role": "system", "content": one.system}] if one.system is not None else []


def _ended(
    number: int, draft: _Draft, lost: Literal["too long", "empty", "no answer in the file"], cut: str | None
) -> Entry:
    """Return an entry of what there is; lost is only one of which nothing is there."""
    return Entry(
        n=number,
        documents=draft.documents,
        lost=None if draft.documents else lost,
        cut=cut if draft.documents else None,
    )


def ids_of(answer: Answer, target: Target) -> list[int]:
    """Return the ids of an answer, with its end token where the target ended it; tokenised here where the server gave none."""
    ids = list(answer.ids) if answer.ids is not None else target.data(answer.text)
    if answer.finished and ids and ids[-1] not in target.ends:
        ids.append(target.ends[0])
    return ids


def _answered(prompt: list[int], whole: list[int], text: str, target: Target) -> list[int]:
    """Return the ids of a given answer as the template writes it, its end token included and nothing after."""
    if whole[: len(prompt)] != prompt:
        return [*target.data(text), target.ends[0]]
    rest = whole[len(prompt) :]
    ends = [rest.index(one) for one in target.ends if one in rest]
    return rest[: min(ends) + 1] if ends else rest
