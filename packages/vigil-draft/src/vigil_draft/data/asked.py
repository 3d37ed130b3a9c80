"""What a preparation is asked for, kept beside what it makes: a later run goes on only with the same."""

import json
import time
from pathlib import Path
from typing import Any

import msgspec

from vigil.errors import UsageError
from vigil.screen import plain
from vigil_draft.data.prepared import write_whole

NAME = "prepare.json"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides what is made. `server`: the model's name there and how it is asked; empty where answers are kept."""

    prompts: str
    target: dict[str, Any]
    server: dict[str, Any]
    max_tokens: int
    length: int
    temperature: float
    held_out: float
    keep_answers: bool
    seed: int
    today: str


class Record(msgspec.Struct, kw_only=True):
    """The file: what was asked for, each run that worked at it, and what came of it (`counts`, once it is finished)."""

    schema: int = 1
    kind: str = "vigil draft preparation"
    asked: Asked
    runs: list[dict[str, Any]] = []
    counts: dict[str, Any] = {}


def begin(folder: Path, asked: Asked, run: dict[str, Any]) -> Record:
    """Return the record of a folder, a new one or that of the same preparation.

    Raises:
        UsageError: The folder holds another preparation, or cannot be written.

    """
    record = recall(folder)
    if record is None:
        record = Record(asked=asked)
    for name in asked.__struct_fields__:
        was, now = getattr(record.asked, name), getattr(asked, name)
        if was != now:
            raise UsageError(
                f"--out {folder} was begun with {_told(name, was, now)}: give another --out, or the same again"
            )
    record.runs.append({"began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **run})
    keep(folder, record)
    return record


def recall(folder: Path) -> Record | None:
    """Return the record of a folder, or None where there is none."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Record)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{folder / NAME} cannot be read: {plain(str(error), 200)}") from error


def keep(folder: Path, record: Record) -> None:
    """Write the record, whole or not at all."""
    try:
        write_whole(folder / NAME, json.dumps(msgspec.to_builtins(record), indent=1).encode())
    except OSError as error:
        raise UsageError(f"--out {folder}: {error.strerror}") from error


def _told(name: str, was: Any, now: Any) -> str:
    if isinstance(was, dict) and isinstance(now, dict):
        name, was, now = next(
            ((f"{name}.{key}", was.get(key), now.get(key)) for key in {**was, **now} if was.get(key) != now.get(key)),
            (name, was, now),
        )
    return plain(f"{name} {was!r}, and it is {now!r} now", 300)
