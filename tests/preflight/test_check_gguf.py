"""What is said of GGUF files and of llama-server's memory."""

import shlex
from typing import Any

import pytest

from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Report, Severity
from vigil.preflight.seen_models import BuildSeen, FileSeen, GgufSeen, ModelSeen, TokensSeen
from vigil.preflight.seen_parser import ParserSeen
from vigil.preflight.sight import Sight


def model(metadata: dict[str, Any], what: str = "model", given: str = "m.gguf", **about: Any) -> ModelSeen:
    file = FileSeen(name=given, size_bytes=1000, gguf=GgufSeen(version=3, metadata=metadata))
    return ModelSeen(what=what, given=given, path=f"/{given}", kind="file", files=(file,), **about)


def report(words: str, *models: ModelSeen, installed: str | None = None, version: str | None = None) -> Report:
    command = Command(words=tuple(shlex.split(words)), own=1, engine="llamacpp", version=version)
    return examine(command, Sight(models=models, parser=ParserSeen(version=installed)))


def severities(found: Report, code: str) -> list[Severity]:
    return [one.severity for one in found.findings if one.code == code]


NEW = {"general.architecture": "deepseek4"}


def test_the_installed_library_has_the_last_word() -> None:
    unknown = report("llama-server -m m.gguf", model(NEW, build=BuildSeen(known=())), installed="11434")
    assert severities(unknown, "ARCH001") == [Severity.FATAL]
    branch = report("llama-server -m m.gguf", model(NEW, build=BuildSeen(known=("deepseek4",))), installed="9093")
    assert branch.findings == ()


def test_a_build_known_by_its_number_alone_may_be_a_branch() -> None:
    found = report("llama-server -m m.gguf", model(NEW), installed="9093")
    assert severities(found, "ARCH001") == [Severity.WARNING]
    assert found.findings[0].advice == "Take a build that has it: it is in 9986 to 11434."
    assert severities(report("llama-server -m m.gguf", model(NEW), version="b9093"), "ARCH001") == [Severity.FATAL]


def test_nothing_is_said_of_an_architecture_that_some_build_has() -> None:
    assert report("llama-server -m m.gguf", model(NEW)).findings == ()
    assert report("llama-server -m m.gguf", model(NEW), installed="12345").findings == ()
    assert report("llama-server -m m.gguf", model({}), installed="9093").findings == ()


def test_a_projector_beside_the_model_in_a_folder_is_no_model() -> None:
    files = (
        FileSeen(
            name="a-mmproj.gguf", size_bytes=1, gguf=GgufSeen(version=3, metadata={"general.architecture": "clip"})
        ),
        FileSeen(name="b.gguf", size_bytes=1, gguf=GgufSeen(version=3, metadata={"general.architecture": "gemma3"})),
    )
    cached = ModelSeen(what="model", given="a/b", path="/hub/a", kind="folder", cached=True, files=files)
    assert report("llama-server -hf a/b", cached, version="9093").findings == ()


# --- drafts beside their targets

FAMILY = {
    "general.architecture": "llama",
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.ggml.bos_token_id": 1,
}


def drafted(
    draft: dict[str, Any] | None = None,
    *,
    version: str | None = "11434",
    tokens: TokensSeen | None = None,
    spec: str = "draft-simple",
) -> list[str]:
    """Return what is said of the vocabulary of a draft that differs from its target in some values."""
    models = model(FAMILY), model({**FAMILY, **(draft or {})}, "-md", "d.gguf", tokens=tokens)
    found = report(f"llama-server -m m.gguf -md d.gguf --spec-type {spec}", *models, version=version)
    assert found.fatal == ()
    return [one.text for one in found.findings if one.code == "DRAFT007"]


def test_a_draft_of_the_family_gives_nothing_to_say() -> None:
    assert drafted() == []
    assert drafted({"tokenizer.ggml.model": "gemma4"}) == []  # the same type of vocabulary


@pytest.mark.parametrize(
    ("draft", "reason"),
    [
        ({"tokenizer.ggml.model": "llama"}, "llama and gpt2"),
        ({"tokenizer.ggml.add_bos_token": False}, "one begins or ends texts with bos, the other does not"),
        ({"tokenizer.ggml.bos_token_id": 7}, "bos is 7 and 1"),
    ],
)
def test_what_llama_server_compares_is_compared(draft: dict[str, Any], reason: str) -> None:
    (text,) = drafted(draft)
    end = "llama-server says so, and serves without speculation"
    assert text == f"d.gguf has another vocabulary than m.gguf: {reason}; {end}."


def test_what_is_not_said_in_a_file_is_not_taken_for_a_difference() -> None:
    models = model(FAMILY), model({"general.architecture": "llama", "tokenizer.ggml.model": "gpt2"}, "-md", "d.gguf")
    assert report("llama-server -m m.gguf -md d.gguf --spec-type draft-simple", *models).findings == ()


def test_other_tokens_behind_the_same_ids_are_told_with_the_first() -> None:
    seen = TokensSeen(what="gguf", compared=95, different=3, first=9, first_target="a", first_draft="\x1b[31mb")
    assert (
        "3 of 95 ids stand for other tokens, 9 is 'a' for the target and 'b' for the draft;" in drafted(tokens=seen)[0]
    )


def test_the_end_is_that_of_the_build() -> None:
    other = {"tokenizer.ggml.model": "llama"}
    assert "is translated, and hardly accepted" in drafted(other, version="9093")[0]
    assert "builds from 9310 on serve without speculation" in drafted(other, version=None)[0]


def test_other_ways_to_draft_do_not_ask_for_one_vocabulary() -> None:
    assert drafted({"tokenizer.ggml.model": "llama"}, spec="draft-mtp") == []
    assert len(drafted({"tokenizer.ggml.model": "llama"}, spec="ngram-mod,draft-simple")) == 1
