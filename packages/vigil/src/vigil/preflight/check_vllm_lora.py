"""vLLM's --lora-modules: `name=path`, or a JSON object with `name` and `path`; nothing of it without --enable-lora.

Read in vllm 0.32 (entrypoints/launchers/cli_args.py: LoRAParserAction; entrypoints/openai/models/serving.py: init_static_loras).
"""

import json
from collections.abc import Iterator

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.pointed import pointed
from vigil.preflight.ranks import has_config
from vigil.screen import plain

MODULES = "--lora-modules"
SEEN = "vllm 0.32, LoRAParserAction"
_WANTED = ("name", "path")


def check_vllm_lora(command: Command) -> Iterator[Finding]:
    """Find adapters that vLLM cannot read, and those that it would refuse once the model is loaded."""
    given = command.last(MODULES)
    if given is None:
        return
    for at, word in _items(command, given):
        yield from _item(given, at, word)
    if command.last("--enable-lora", "--no-enable-lora") is None and not has_config(command):
        text = f"{MODULES} without --enable-lora: the start ends when the first adapter is loaded, after the model"
        edits = (Edit(at=given.at, put=("--enable-lora",)),)
        seen = "vllm 0.32, LoRAModelRunnerMixin: LoRA is not enabled"
        yield pointed(given, "FLAG004", Severity.FATAL, text, "add --enable-lora", edits=edits, seen=seen)


def _items(command: Command, given: Given) -> Iterator[tuple[int, str]]:
    """Yield the words that the flag takes, with their places."""
    words = command.words[: command.end]
    if given.count == 1 and given.value is not None:
        yield given.at, given.value
        return
    for at in range(given.at + 1, len(words)):
        if words[at].startswith("-"):
            return
        yield at, words[at]


def _item(given: Given, at: int, word: str) -> Iterator[Finding]:
    if not word or "$" in word or ("=" in word and "," not in word):
        return
    parts = word.split(",")
    try:
        told = json.loads(word)
    except (ValueError, RecursionError):
        pairs = not word.startswith("{") and all(one.count("=") == 1 for one in parts)
        text = f"{MODULES} {plain(word, 80)} is neither name=path nor a JSON object"
        advice = "adapters are words of their own, with no comma between them" if pairs else "write it as name=path"
        edits = (Edit(at=at, drop=1, put=tuple(parts)),) if pairs and at != given.at else ()
        yield pointed(given, "FLAG002", Severity.FATAL, text, advice, edits=edits, seen=SEEN)
        return
    missing = [one for one in _WANTED if one not in told] if isinstance(told, dict) else list(_WANTED)
    if missing:
        text = f"{MODULES} {plain(word, 80)} says no {' and no '.join(missing)}"
        advice = "as name=path, or as " + '\'{"name": "...", "path": "..."}\''
        yield pointed(given, "FLAG002", Severity.FATAL, text, advice, seen=SEEN)
