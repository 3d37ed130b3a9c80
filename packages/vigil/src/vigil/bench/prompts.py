"""Prompts: made of words that are drawn by a seed, so that none repeats, or read from a file. Pure but for the reading."""

import functools
import hashlib
import random
from importlib import resources
from pathlib import Path

import msgspec

from vigil.errors import UsageError

MOST_BYTES = 256 << 20


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt: text or chat messages. `output_tokens`: how long its answer may be, where the file says so."""

    text: str | None = None
    messages: tuple[dict[str, object], ...] | None = None
    output_tokens: int | None = None


class _Line(msgspec.Struct, frozen=True):
    """A line of a JSONL file, under the names that common data sets use."""

    prompt: str | None = None
    text: str | None = None
    messages: list[dict[str, object]] | None = None
    output_tokens: int | None = None
    output_len: int | None = None
    max_tokens: int | None = None


@functools.cache
def word_list() -> tuple[str, ...]:
    """Return the words that prompts are made of: short and common ones, each once."""
    return tuple(resources.files("vigil.bench").joinpath("words.txt").read_text("utf-8").split())


def made(seed: int, index: int, words: int) -> str:
    """Return the prompt number `index` of a seed; two numbers share no more than chance does, from the first word on."""
    rng = random.Random(f"{seed}/{index}")  # noqa: S311 - no secret
    return " ".join(rng.choices(word_list(), k=max(1, words)))


def read(path: Path) -> tuple[Prompt, ...]:
    """Return the prompts of a file: JSONL with `prompt`, `text` or `messages`, else one prompt a line.

    Raises `UsageError` in one line, with the number of the line, for what is neither.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"--prompts {path}: longer than {MOST_BYTES >> 20} MiB; give a part of it")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"--prompts {path} cannot be read: {why}") from error
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise UsageError(f"--prompts {path} holds no prompt")
    if path.suffix.lower() not in {".jsonl", ".json", ".ndjson"}:
        return tuple(Prompt(text=line) for _, line in lines)
    return tuple(_read_line(path, number, line) for number, line in lines)


def _read_line(path: Path, number: int, line: str) -> Prompt:
    try:
        found = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"--prompts {path}, line {number}: {error}") from error
    text = found.prompt or found.text
    if not text and not found.messages:
        raise UsageError(f"--prompts {path}, line {number}: neither 'prompt' nor 'messages' is in it")
    wanted = found.output_tokens or found.output_len or found.max_tokens
    return Prompt(
        text=text, messages=tuple(found.messages) if found.messages and not text else None, output_tokens=wanted
    )


def longest(prompts: tuple[Prompt, ...]) -> Prompt:
    """Return the prompt of the most characters: the one that is likeliest not to fit."""
    return max(prompts, key=lambda one: len(one.text or "") or len(msgspec.json.encode(one.messages)))


def turned(prompt: Prompt) -> Prompt:
    """Return a prompt begun at its middle: about as long, and no cache that has read it holds a beginning of the real one."""

    def turn(text: str) -> str:
        return text[len(text) // 2 :] + text[: len(text) // 2]

    if prompt.text is not None:
        return msgspec.structs.replace(prompt, text=turn(prompt.text))
    messages = [
        {name: turn(one) if name == "content" and isinstance(one, str) else one for name, one in message.items()}
        for message in prompt.messages or ()
    ]
    return msgspec.structs.replace(prompt, messages=tuple(messages))


def digest(prompts: tuple[Prompt, ...] | None, seed: int, words: int) -> str:
    """Return what the prompts of a measurement were, as 16 hexadecimal characters."""
    data = msgspec.json.encode(prompts) if prompts else f"{seed}/{words}/{' '.join(word_list())}".encode()
    return hashlib.sha256(data).hexdigest()[:16]
