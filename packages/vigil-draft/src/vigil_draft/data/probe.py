"""Look at a server before thousands of questions: which dialect it takes, and whether its tokenizer is the target's."""

import msgspec

from vigil.bench.client import Client
from vigil.bench.reply import Failure
from vigil.bench.target import Target as Served
from vigil.errors import MeasureError, UnreachableError, UsageError
from vigil_draft.data.dialects import CHAT, DIALECTS, Answer, Ask, Dialect
from vigil_draft.data.exchange import exchange, post
from vigil_draft.data.template import Target

TEXTS = (
    "The quick brown fox, 1234567 + 89.0 = ?",
    "  def f(x):\n\treturn x**2  # naïve café — 日本語 🙂\n\n\n",
    "ELECTROENCEPHALOGRAPHY isn't don't  we've",
)
FEW_TOKENS = 8


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is asked. `notes`: what could not be had or checked, in words."""

    served: Served
    dialect: Dialect
    notes: tuple[str, ...] = ()


async def probe(client: Client, served: Served, target: Target) -> Known:
    """Ask a short question, and compare tokenizers.

    Raises:
        UsageError: The server's tokenizer is another, or it refuses such questions.
        UnreachableError: It does not answer.
        MeasureError: It answers with nothing usable.

    """
    wanted = DIALECTS.get(served.engine, CHAT)
    notes: list[str] = []
    answer = await _short(client, served, target, wanted)
    if answer is None and wanted is not CHAT:
        notes.append(f"it does not take {wanted.path}: answers come by /v1/chat/completions")
        wanted = CHAT
        answer = await _short(client, served, target, wanted)
    if answer is None:
        raise UsageError(f"{served.url} takes no question at {wanted.path}")
    if wanted.exact and answer.ids is None:
        wanted = msgspec.structs.replace(wanted, exact=False, words=CHAT.words.replace(CHAT.path, wanted.path))
        notes.append(
            "it gives no token ids of its answers: they are tokenised again, and may differ from what was generated"
        )
    if not await _compare(client, served, target, wanted):
        notes.append("its tokenizer could not be compared with the target's: it has no /tokenize")
    if answer.ids is not None:
        _must_say(answer, answer.ids, target, served)
    return Known(served=served, dialect=wanted, notes=tuple(notes))


async def _short(client: Client, served: Served, target: Target, dialect: Dialect) -> Answer | None:
    """Return a short answer; None where this dialect is refused."""
    messages = [{"role": "user", "content": "Name a colour."}]
    ask = Ask(
        model=served.model,
        ids=target.prompt(messages),
        messages=messages,
        max_tokens=FEW_TOKENS,
        temperature=0.0,
        seed=0,
    )
    reply, answer = await exchange(client, dialect, ask)
    match reply.failure:
        case None:
            return answer
        case Failure.REFUSED:
            return None
        case Failure.UNREACHABLE:
            raise UnreachableError(f"{served.url}: {reply.detail}")
        case _:
            raise MeasureError(f"{served.url}: a first question was not answered ({reply.failure}): {reply.detail}")


async def _compare(client: Client, served: Served, target: Target, dialect: Dialect) -> bool:
    """Compare the server's tokens with ours, text by text; return whether it could be done."""
    if dialect.tokenize is None:
        return False
    for text in (*TEXTS, target.sample):
        reply, body = await post(client, "/tokenize", dialect.tokenize(served.model, text))
        theirs = body.get("tokens") if body is not None else None
        if reply.failure is not None or not isinstance(theirs, list):
            return False
        ours = target.encoded(text)
        if theirs != ours:
            raise UsageError(
                f"{served.url} has another tokenizer than {target.folder}: {text[:24]!r} is {str(theirs)[:60]} there and"
                f" {str(ours)[:60]} here; its answers would train a draft of another target"
            )
    return True


def _must_say(answer: Answer, ids: list[int], target: Target, served: Served) -> None:
    """Refuse where the ids of an answer are not its text."""
    said = target.text(ids) if max(ids, default=0) < target.vocabulary else ""
    if said.strip() != answer.text.strip() and "\ufffd" not in said:  # half a character may be cut off
        raise UsageError(
            f"{served.url} answered {answer.text[:40]!r} and gives ids that read {said[:40]!r} by {target.folder}"
        )
