"""Check the draft of a llama-server: its GGUF file against the method that was asked for, and against the target's."""

from collections.abc import Iterator

from vigil.preflight import releases
from vigil.preflight.command import Command
from vigil.preflight.draft_pair import told
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import speculation
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.seen_models import GgufSeen, ModelSeen

VOCABULARY_SLACK = 128
"""SPEC_VOCAB_MAX_SIZE_DIFFERENCE of llama.cpp b9093 to b11434: common_speculative_are_compatible allows this difference."""
TRANSLATES = (9093,)
"""Up to this build at least tokens of another vocabulary are translated, by their text."""
REFUSES = (9310,)
"""From this build on at the latest there is no speculation then: an exception that the server goes on after."""
# What makes one type of vocabulary in llama.cpp b11434 (src/llama-vocab.cpp).
KINDS = {"hybriddna": "gpt2", "whitespace": "gpt2", "gemma4": "gpt2", "none": "no_vocab"}
OF_ARCHITECTURE = {"eagle3": "draft-eagle3", "dflash": "draft-dflash"}


def check_gguf(command: Command, model: ModelSeen, target: ModelSeen | None, version: str | None) -> Iterator[Finding]:
    """Find a draft that is asked for as another kind than it is, and one of another family than its target."""
    draft = model.gguf
    if draft is None:
        return
    yield from _method(command, model, draft)
    there = target.gguf if target is not None else None
    if target is not None and there is not None and draft.architecture not in OF_ARCHITECTURE:
        reason = _differs(model, draft, there)
        yield from _vocabulary(command, model, target, reason, version) if reason is not None else ()


def _method(command: Command, model: ModelSeen, draft: GgufSeen) -> Iterator[Finding]:
    asked, flag = speculation(command)
    if flag is None or asked not in {"draft-simple", *OF_ARCHITECTURE.values()}:
        return
    right = OF_ARCHITECTURE.get(draft.architecture, "draft-simple")
    if right == asked:
        return
    # Seen in b11434: "draft model is not eagle3 (expected 3 extract layers, got 0)", and it serves on without speculation.
    yield pointed(
        flag,
        "SPEC001" if right == "draft-simple" else "DRAFT001",
        Severity.WARNING if right == "draft-simple" else Severity.FATAL,
        f"{model.given} has the architecture {draft.architecture or '(none)'}, and --spec-type asks for {asked}: "
        + (
            "llama-server says so in one line, and serves without speculation."
            if right == "draft-simple"
            else "it is no model that can run alone."
        ),
        f"Ask for {right}.",
        edits=with_value(flag, right),
        seen="general.architecture in the file",
    )


def _vocabulary(
    command: Command, model: ModelSeen, target: ModelSeen, reason: str, version: str | None
) -> Iterator[Finding]:
    """Tell of a draft that common_speculative_are_compatible turns down; other ways to draft than draft-simple do not ask it."""
    asked, _ = speculation(command)
    if asked and "draft-simple" not in asked.split(","):
        return
    numbers = releases.numbers_of(version)
    if () < numbers <= TRANSLATES:
        end = "what it proposes is translated, and hardly accepted"
    elif numbers >= REFUSES:
        end = "llama-server says so, and serves without speculation"
    else:
        end = f"builds from {REFUSES[0]} on serve without speculation then, older ones translate what is proposed"
    yield Finding(
        code="DRAFT007",
        severity=Severity.WARNING,
        text=f"{model.given} has another vocabulary than {target.given}: {reason}; {end}.",
        advice="Take a draft of the same family.",
        seen="the files' metadata; llama.cpp b11434, common_speculative_are_compatible",
    )


def _differs(model: ModelSeen, draft: GgufSeen, there: GgufSeen) -> str | None:
    """Return in words what llama-server would find different, None where nothing shows."""
    kinds = [str(one.metadata.get("tokenizer.ggml.model") or "") for one in (draft, there)]
    if len({KINDS.get(one, one) for one in kinds}) > 1:
        return f"{kinds[0] or '(none)'} and {kinds[1] or '(none)'}"
    for name in ("bos", "eos"):
        adds, ids = ([one.metadata.get(f"tokenizer.ggml.{key}") for one in (draft, there)] for key in _keys(name))
        if None not in adds and adds[0] != adds[1]:
            return f"one begins or ends texts with {name}, the other does not"
        if adds == [True, True] and None not in ids and ids[0] != ids[1]:
            return f"{name} is {ids[0]} and {ids[1]}"
    sizes = [one.vocabulary or 0 for one in (draft, there)]
    if 0 not in sizes and abs(sizes[0] - sizes[1]) > VOCABULARY_SLACK:
        return f"{sizes[0]} and {sizes[1]} tokens, more than {VOCABULARY_SLACK} apart"
    if model.tokens is not None and model.tokens.different:
        return f"{model.tokens.different} of {model.tokens.compared} ids stand for other tokens, {told(model.tokens)}"
    return None


def _keys(name: str) -> tuple[str, str]:
    return f"add_{name}_token", f"{name}_token_id"
