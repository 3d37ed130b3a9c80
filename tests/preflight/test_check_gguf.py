"""What is said of GGUF files and of llama-server's memory."""

import shlex
from typing import Any

from vigil.preflight import Command, Report, Severity, Sight, examine
from vigil.preflight.seen_models import BuildSeen, FileSeen, GgufSeen, ModelSeen
from vigil.preflight.seen_parser import ParserSeen


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
