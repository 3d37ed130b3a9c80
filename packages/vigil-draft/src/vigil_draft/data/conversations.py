"""Conversations from files of prompts: JSON lines under the names that common data sets use, or one prompt a line."""

import gzip
import hashlib
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from vigil.errors import UsageError
from vigil.screen import plain

OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
JSON_NAMES = frozenset({".jsonl", ".json", ".ndjson"})
LINE_BYTES = 16 << 20
ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant",
    "bard": "assistant", "model": "assistant",
}  # fmt: skip


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """What a user said, turn by turn. `answers`: those of the file, as many as there are; `place`: its file and line."""

    turns: tuple[str, ...]
    system: str | None = None
    answers: tuple[str, ...] = ()
    place: str = ""

    @property
    def key(self) -> str:
        """Return what two conversations share that ask the same, whatever their spaces and capitals."""
        return _digest("\x1f".join([self.system or "", *self.turns]))

    @property
    def first_key(self) -> str:
        """Return the same of its first turn alone: what decides whether it is held out, so that no prompt is on both sides."""
        return _digest(self.turns[0])


class _Line(msgspec.Struct, frozen=True):
    prompt: str | None = None
    text: str | None = None
    system: str | None = None
    messages: list[dict[str, Any]] | None = None
    conversations: list[dict[str, Any]] | None = None


_line = msgspec.json.Decoder(_Line).decode


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read: each conversation once. `doubles`: how many asked what another had asked; `digest`: of the whole."""

    conversations: tuple[Conversation, ...]
    doubles: int
    digest: str


def read(paths: list[Path], name: str = "--prompts") -> Read:
    """Return the conversations of files, one after another.

    Raises:
        UsageError: A file cannot be read, or a line of it is none: with its file and number.

    """
    found: dict[str, Conversation] = {}
    number, digest = 0, hashlib.sha256()
    for path in paths:
        for one in _of_file(path, name):
            number += 1
            digest.update(msgspec.json.encode((one.system, one.turns, one.answers)))
            found.setdefault(one.key, one)
    if not found:
        raise UsageError(f"{name} {' '.join(map(str, paths))}: no prompt is in it")
    return Read(conversations=tuple(found.values()), doubles=number - len(found), digest=digest.hexdigest()[:32])


def _of_file(path: Path, name: str) -> Iterator[Conversation]:
    packed = path.suffix.lower()
    kind = path.with_suffix("").suffix.lower() if packed in OPENERS else packed
    number = 0
    try:
        with OPENERS.get(packed, open)(path, "rb") as file:
            for number, line in _lines(file):
                if line.strip():
                    yield _conversation(line, kind in JSON_NAMES, f"{path}, line {number}")
    except (OSError, EOFError, lzma.LZMAError) as error:
        why = getattr(error, "strerror", None) or str(error) or "it is cut"
        raise UsageError(f"{name} {path} cannot be read after line {number}: {why}") from error
    except _NoneError as error:
        raise UsageError(f"{name} {plain(str(error), 400)}") from error


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(LINE_BYTES + 1):
        number += 1
        yield number, line


class _NoneError(ValueError):
    """A line holds no conversation."""


def _conversation(line: bytes, as_json: bool, place: str) -> Conversation:  # noqa: FBT001 - of one file
    if len(line) > LINE_BYTES:
        raise _NoneError(f"{place}: longer than {LINE_BYTES >> 20} MiB")
    if not as_json:
        try:
            return Conversation(turns=(line.decode().strip(),), place=place)
        except UnicodeDecodeError as error:
            raise _NoneError(f"{place}: it is not UTF-8 text") from error
    try:
        held = _line(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _NoneError(f"{place}: {error}") from error
    said = held.messages or held.conversations
    if said:
        return _of_messages(said, place)
    text = held.prompt or held.text
    if not text or not text.strip():
        raise _NoneError(f"{place}: none of 'prompt', 'messages' and 'conversations' is in it")
    return Conversation(turns=(text,), system=held.system, place=place)


def _of_messages(said: list[dict[str, Any]], place: str) -> Conversation:
    """Return a conversation of messages: a system's word at its head, then turns; what an assistant says first is left out."""
    system: list[str] = []
    turns: list[str] = []
    answers: dict[int, str] = {}
    for number, message in enumerate(said, 1):
        role = ROLES.get(str(message.get("role") or message.get("from")))
        text = _text(message.get("content", message.get("value")))
        if role is None or text is None:
            raise _NoneError(f"{place}: message {number} is no text of a system, a user or an assistant")
        if role == "system":
            system.append(text)
        elif role == "user":
            turns.append(text)
        elif turns:
            answers.setdefault(len(turns) - 1, text)
    if not turns or not all(one.strip() for one in turns):
        raise _NoneError(f"{place}: {'no message' if not turns else 'an empty message'} of a user is in it")
    known = [answers[at] for at in range(len(turns)) if all(before in answers for before in range(at + 1))]
    return Conversation(turns=tuple(turns), system="\n\n".join(system) or None, answers=tuple(known), place=place)


def _text(content: Any) -> str | None:
    """Return a message's text, which may stand in parts; None where a part is something else."""
    if isinstance(content, list):
        parts = [one.get("text") if isinstance(one, dict) and one.get("type") == "text" else None for one in content]
        return "\n".join(parts) if parts and all(isinstance(one, str) for one in parts) else None  # type: ignore[arg-type]
    return content if isinstance(content, str) else None
