"""Where a model stands in a command, how another value would be put there, and which release of the engine would read it."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding
from vigil.preflight.pointed import with_value
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.sight import Sight

TITLES = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama-server"}
DRAFTS = {
    "sglang": ("--speculative-draft-model-path", "--speculative-draft-model"),
    "vllm": ("--speculative-config", "-sc", "--speculative-model", "--speculative-config.model"),
    "llamacpp": ("--spec-draft-model", "--model-draft", "-md", "--spec-draft-hf", "--hf-repo-draft", "-hfd", "-hfrd"),
}
CONFIGS = ("--speculative-config", "-sc")
TOKENIZERS = ("--tokenizer", "--tokenizer-path")


def served(sight: Sight) -> ModelSeen | None:
    """Return the model that is served."""
    return next((one for one in sight.models or () if one.what == "model"), None)


def draft_of(command: Command, sight: Sight) -> ModelSeen | None:
    """Return the draft model, None where the command names none."""
    names = DRAFTS.get(command.engine, ())
    return next((one for one in reversed(sight.models or ()) if one.what in names), None)


def version_for(model: ModelSeen | None, sight: Sight) -> str | None:
    """Return the version of the engine: of the one that is installed, else the one that the flags were held against."""
    if model is not None and model.build is not None and model.build.version:
        return model.build.version
    return sight.version


def title(command: Command, version: str | None) -> str:
    """Return the engine's name with its version."""
    return f"{TITLES.get(command.engine, command.engine)} {(version or '').split('+')[0]}".strip()


def flag_of(command: Command, model: ModelSeen) -> Given | None:
    """Return the flag that names a model, None where it stands as a word of its own."""
    if model.what != "model":
        return command.last(model.what)
    others = (*DRAFTS.get(command.engine, ()), *TOKENIZERS)
    return next((one for one in reversed(command.flags) if one.value == model.given and one.plain not in others), None)


def place_of(command: Command, model: ModelSeen) -> tuple[int | None, int]:
    """Return the words that name a model: the first, and how many."""
    flag = flag_of(command, model)
    if flag is not None:
        return flag.at, flag.count
    found = next((at for at in range(command.own, len(command.words)) if command.words[at] == model.given), None)
    return found, 1


def placed(command: Command, model: ModelSeen, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings on a model: those that name no words are about the words that name it."""
    at, count = place_of(command, model)
    for one in findings:
        yield one if one.at is not None else msgspec.structs.replace(one, at=at, count=count)


def renamed(command: Command, model: ModelSeen, name: str) -> tuple[Edit, ...]:
    """Return the edit that gives a model another name."""
    flag = flag_of(command, model)
    if flag is not None and flag.plain in CONFIGS:
        return in_config(flag, {"model": name})
    if flag is not None:
        return with_value(flag, name)
    at, _ = place_of(command, model)
    return () if at is None else (Edit(at=at, drop=1, put=(name,)),)


def dropped(flag: Given) -> tuple[Edit, ...]:
    """Return the edit that takes a flag away."""
    return (Edit(at=flag.at, drop=flag.count),)


def config_in(flag: Given | None) -> dict[str, Any]:
    """Return the JSON object that a flag gives, empty where it gives none."""
    try:
        told = json.loads(flag.value or "") if flag is not None else None
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def in_config(flag: Given, changes: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the edit that changes a JSON object."""
    return with_value(flag, json.dumps({**config_in(flag), **changes}))


def speculation(command: Command) -> tuple[str, Given | None]:
    """Return the method of speculation that was asked for in lower case, "" for none, and the flag that asks."""
    if command.engine == "sglang":
        flag = command.last("--speculative-algorithm", "--speculative-algo")
        return (flag.value or "").lower() if flag is not None else "", flag
    if command.engine == "vllm":
        flag = command.last(*CONFIGS)
        told = config_in(flag).get("method")
        return told.lower() if isinstance(told, str) else "", flag
    flag = command.last("--spec-type")
    return (flag.value or "").lower() if flag is not None else "", flag
