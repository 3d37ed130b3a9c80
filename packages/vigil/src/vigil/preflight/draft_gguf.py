"""Check the draft of a llama-server: its GGUF file against the method that was asked for, and against the target's."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.placing import speculation, valued
from vigil.preflight.seen_models import GgufSeen, ModelSeen

# llama.cpp b11434: common_speculative_are_compatible allows this difference.
VOCABULARY_SLACK = 128
OF_ARCHITECTURE = {"eagle3": "draft-eagle3", "dflash": "draft-dflash"}


def check_gguf(command: Command, model: ModelSeen, target: ModelSeen | None) -> Iterator[Finding]:
    """Find a draft that is asked for as another kind than it is, and one of another family than its target."""
    draft = model.gguf
    if draft is None:
        return
    yield from _method(command, model, draft)
    there = target.gguf if target is not None else None
    if target is not None and there is not None and draft.architecture not in OF_ARCHITECTURE:
        yield from _vocabulary(model, target, draft, there)


def _method(command: Command, model: ModelSeen, draft: GgufSeen) -> Iterator[Finding]:
    asked, flag = speculation(command)
    if flag is None or asked not in {"draft-simple", *OF_ARCHITECTURE.values()}:
        return
    right = OF_ARCHITECTURE.get(draft.architecture, "draft-simple")
    if right == asked:
        return
    # Seen in b11434: "draft model is not eagle3 (expected 3 extract layers, got 0)", and it serves on without speculation.
    yield Finding(
        code="SPEC001" if right == "draft-simple" else "DRAFT001",
        severity=Severity.WARNING if right == "draft-simple" else Severity.FATAL,
        text=f"{model.given} has the architecture {draft.architecture or '(none)'}, and --spec-type asks for {asked}: "
        + (
            "llama-server says so in one line, and serves without speculation."
            if right == "draft-simple"
            else "it is no model that can run alone."
        ),
        advice=f"Ask for {right}.",
        at=flag.at,
        count=flag.count,
        edits=valued(flag, right),
        seen="general.architecture in the file",
    )


def _vocabulary(model: ModelSeen, target: ModelSeen, draft: GgufSeen, there: GgufSeen) -> Iterator[Finding]:
    kinds = [str(one.metadata.get("tokenizer.ggml.model") or "") for one in (draft, there)]
    sizes = [one.vocabulary or 0 for one in (draft, there)]
    if kinds[0] == kinds[1] and (0 in sizes or abs(sizes[0] - sizes[1]) <= VOCABULARY_SLACK):
        return
    yield Finding(
        code="DRAFT007",
        severity=Severity.WARNING,
        text=f"{model.given} has another vocabulary ({kinds[0]}, {sizes[0]} tokens) than {target.given} "
        f"({kinds[1]}, {sizes[1]}).",
        advice="Take a draft of the same family: what it proposes is translated at best, and hardly accepted.",
    )
