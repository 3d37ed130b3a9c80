"""The record of a training, `record.jsonl`, read again: hostile as any file. No torch."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vigil.errors import UsageError
from vigil.screen import plain

FILE = "record.jsonl"
MOST_BYTES = 64 << 20
"""A line each ten seconds: 64 MiB are 25 days."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A line of the record: tokens seen so far, and the means since the line before."""

    step: int
    tokens: float
    loss: float
    accuracy: tuple[float, ...]
    length: float
    """Estimated acceptance length of the whole chain, with the target's own token."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A training's course."""

    name: str
    moments: tuple[Moment, ...]


def read(path: Path) -> Record:
    """Return the record of a draft's folder, or the one that is named; UsageError where there is none."""
    file = path / FILE if path.is_dir() else path
    shown = plain(str(file), 200)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{shown}: has {file.stat().st_size} bytes, and was not read")
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}: name a folder that vigil draft train wrote") from None
    found: list[Moment] = []
    before: dict[str, Any] = {"seconds": 0.0}
    for number, line in enumerate(lines, 1):
        try:
            told = json.loads(line)
            moment = _moment(told, before, found[-1].tokens if found else 0.0)
        except (ValueError, KeyError, TypeError, AttributeError):
            if number == len(lines):
                break  # cut by a kill
            raise UsageError(f"{shown}: line {number} is no line of a training's record") from None
        # After a kill a training goes on from its checkpoint: the steps behind it come a second time, and count then.
        while found and found[-1].step >= moment.step:
            found.pop()
        found.append(moment)
        before = told
    if not found:
        raise UsageError(f"{shown}: holds no line of a training yet")
    return Record(name=file.parent.name or file.name, moments=tuple(found))


def _moment(told: dict[str, Any], before: dict[str, Any], tokens: float) -> Moment:
    """Return a line as numbers. Records from before `tokens` was written have a rate and a time."""
    seen = told.get("tokens")
    if seen is None:
        seen = tokens + told["tokens_per_s"] * max(0.0, told["seconds"] - before["seconds"])
    accuracy = tuple(float(each) for each in told["accuracy"])
    numbers = (float(seen), float(told["loss"]), float(told["acceptance_length"]))
    if not accuracy or not all(map(math.isfinite, (*numbers, *accuracy))):
        raise ValueError("no numbers")
    return Moment(step=int(told["step"]), tokens=numbers[0], loss=numbers[1], accuracy=accuracy, length=numbers[2])


def named_apart(records: list[Record]) -> list[Record]:
    """Return the records, those of one name told apart by their numbers."""
    names = [one.name for one in records]
    return [
        replace(one, name=f"{one.name} ({number})") if names.count(one.name) > 1 else one
        for number, one in enumerate(records, 1)
    ]


def told(record: Record) -> str:
    """Return where a training stands, in a line."""
    last = record.moments[-1]
    accuracy = " ".join(f"{each:.3f}" for each in last.accuracy)
    return (
        f"{plain(record.name, 80)}: {last.step:,} steps, {last.tokens / 1e6:.3g} million tokens, loss {last.loss:.3f}, "
        f"accuracy {accuracy}, acceptance length {last.length:.2f} (k {len(last.accuracy)})"
    )
