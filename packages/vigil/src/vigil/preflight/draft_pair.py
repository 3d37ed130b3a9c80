"""Check a draft beside its target: widths, vocabularies, and how long a text it was made for."""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.check_fit import CONTEXT, LONGER, OVERRIDES, length_of
from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import CONTEXT_KEYS, integer, longest_context, text_part
from vigil.preflight.placing import TOKENIZERS, config_in, speculation, title
from vigil.preflight.seen_models import ModelSeen, TokensSeen
from vigil.screen import plain

FEW = 0.01
"""A share of ids below which two tokenizers differ in names of special tokens at most."""
OVERRIDDEN_FROM = (0, 27)  # vLLM 0.27.1 raises a draft's max_position_embeddings to its target's; 0.23.0 does not


def check_pair(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen | None, version: str | None
) -> Iterator[Finding]:
    """Find where a draft and its target do not go together."""
    if target is None or target.config is None:
        return
    if draft.kind == "eagle3":
        yield from _width(command, model, draft, target, version)
    yield from _vocabulary(command, model, draft, target, version)
    yield from _tokens(command, model, target)
    yield from _context(command, model, draft, target, version)


def _width(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen, version: str | None
) -> Iterator[Finding]:
    has = integer(text_part(target.config or {}), "hidden_size")
    if "target_hidden_size" in draft.config and draft.config["target_hidden_size"] is None and not draft.speculators:
        yield Finding(
            code="DRAFT001",
            severity=Severity.FATAL,
            text=f"config.json of {model.given} has target_hidden_size null: {title(command, version)} multiplies by it.",
            advice="Take the line out where both are equally wide, else write the target's hidden size.",
            seen="llama_eagle3.py of SGLang 0.5.23 and vLLM 0.32: only a value that is not there is replaced",
        )
        return
    wanted = draft.target_hidden_size
    if has is None or wanted is None or has == wanted:
        return
    when = (
        "its first request kills it"
        if command.engine == "vllm"
        else "it ends at its first batch, which is its own warm-up"
    )
    yield Finding(
        code="DRAFT001",
        severity=Severity.FATAL,
        text=f"{model.given} was made for a target with a hidden size of {wanted}, and {target.given} has {has}: "
        f"its fc takes {draft.fed_from} x {wanted} = {draft.fed_from * wanted} numbers and is given "
        f"{draft.fed_from * has}; {when}.",
        advice="Take the draft that was trained for this target.",
    )


def _vocabulary(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen, version: str | None
) -> Iterator[Finding]:
    has, own = (integer(text_part(one), "vocab_size") for one in (target.config or {}, draft.config))
    if has is None or own is None or has == own:
        return
    _, flag = speculation(command)
    strict = command.engine == "vllm" and draft.kind == "model" and not config_in(flag).get("use_heterogeneous_vocab")
    what = "both must have one tokenizer, or what is proposed means something else"
    if strict:
        what = f"{title(command, version)} refuses that"
    yield Finding(
        code="DRAFT001" if strict else "DRAFT007",
        severity=Severity.FATAL if strict else Severity.WARNING,
        text=f"{model.given} has a vocabulary of {own} tokens, and {target.given} of {has}: {what}.",
        advice="Take a draft of the same family.",
        seen="vLLM 0.32: verify_equal_vocab_size_if_draft_model" if strict else "",
    )


def _tokens(command: Command, model: ModelSeen, target: ModelSeen) -> Iterator[Finding]:
    """Find ids that stand for other tokens: both engines hand them on as they are, with the target's tokenizer around them."""
    seen, (_, flag) = model.tokens, speculation(command)
    named = command.last(*TOKENIZERS) is not None  # then the target's own is not the one that counts
    if seen is None or not seen.different or named or config_in(flag).get("use_heterogeneous_vocab"):
        return
    few = seen.different <= FEW * seen.compared
    yield Finding(
        code="DRAFT007",
        severity=Severity.NOTE if few else Severity.WARNING,
        text=f"{seen.different} of the {seen.compared} token ids that {model.given} and {target.given} both have stand for other "
        f"tokens: {told(seen)}.",
        advice="Where these come up, what is proposed is not accepted."
        if few
        else "Take a draft that was made for this tokenizer: hardly a token is accepted of this one.",
        seen=f"{seen.what} of both",
    )


def told(seen: TokensSeen) -> str:
    """Return the first id that stands for two tokens, with both."""
    return f"{seen.first} is {plain(seen.first_target, 40)!r} for the target and {plain(seen.first_draft, 40)!r} for the draft"


def _context(
    command: Command, model: ModelSeen, draft: Draft, target: ModelSeen, version: str | None
) -> Iterator[Finding]:
    """Find a draft that was made for shorter texts than its target is served with."""
    flag = command.last(*CONTEXT[command.engine])
    text = text_part(target.config or {})
    # Without the flag the least that any engine would make of the target's config.
    by_config = min((value for name in CONTEXT_KEYS if (value := integer(text, name)) is not None), default=None)
    served, longest = (length_of(flag.value) if flag is not None else by_config), longest_context(draft.config)
    if served is None or longest is None or served <= longest or command.last(*OVERRIDES) is not None:
        return
    numbers, variable = releases.numbers_of(version), LONGER[command.engine]
    lets = (command.env.get(variable) or "0").lower() not in {"0", "", "false"}
    if command.engine == "vllm":
        if draft.kind == "model" or numbers >= OVERRIDDEN_FROM:
            return
        end = "beyond that positions are cut off without a word, and hardly a token is accepted"
    elif lets or numbers < (0, 5, 2):
        end = "beyond that its proposals are hardly accepted"
    else:
        end = f"the start ends in an error, unless {variable}=1 is set"
    fatal = command.engine == "sglang" and "ends in an error" in end
    yield Finding(
        code="FLAG003",
        severity=Severity.FATAL if fatal else Severity.WARNING,
        text=f"{model.given} was made for {longest} positions, and the server's context is {served}: {end}.",
        advice=f"Give {CONTEXT[command.engine][0]} {longest}, or set {variable}=1 and measure what is accepted of long texts."
        if command.engine == "sglang"
        else f"Write {served} into max_position_embeddings of the draft's config.json, if it was trained for that.",
        seen="SGLang 0.5.23: ModelConfig._derive_context_length" if fatal else "",
    )
