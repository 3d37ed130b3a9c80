"""The folder of one measurement: what was asked for, and a line for each finished row, which no kill takes away."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Any, Self

import msgspec

from vigil.bench.row import SCHEMA, Row
from vigil.bench.settings import Point, Settings
from vigil.errors import MeasureError, UsageError

META, ROWS = "meta.json", "rows.jsonl"
MOST_BYTES = 512 << 20


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One of what is compared: its name, and its command without secrets (none: a server that was there)."""

    name: str
    command: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for. `prompts`: their hash; `notes`: what was set beyond it; `machine`: where it was measured from.

    `host`: where the arms were started, empty for this machine.
    """

    schema: int = SCHEMA
    title: str
    arms: tuple[Arm, ...]
    points: tuple[Point, ...]
    settings: Settings
    prompts: str = ""
    notes: tuple[str, ...] = ()
    machine: dict[str, Any] = msgspec.field(default_factory=dict)
    host: str = ""

    def same(self, other: "Meta") -> bool:
        """Say whether both ask for the same, so that rows of one are rows of the other."""
        return self.asked == other.asked

    @property
    def asked(self) -> tuple[Any, ...]:
        """What makes two measurements the same."""
        return (self.arms, self.points, self.settings, self.prompts, self.host)


class Results:
    """An open folder. Invariant: `rows` is what the file holds, and no other process writes to it meanwhile."""

    def __init__(self, path: Path, meta: Meta, rows: list[Row], handle: int) -> None:
        self.path, self.meta, self.rows, self._handle = path, meta, rows, handle
        self.servers: dict[str, dict[str, Any]] = {}

    @classmethod
    def begin(cls, path: Path, meta: Meta) -> Self:
        """Open a new folder, or go on with one that asks for the same; raise `UsageError` where it asks for something else."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            handle = os.open(path / ROWS, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(f"--out {path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise UsageError(f"--out {path}: another vigil is measuring into it") from error
        try:
            return cls._open(path, meta, handle)
        except BaseException:
            os.close(handle)
            raise

    @classmethod
    def _open(cls, path: Path, meta: Meta, handle: int) -> Self:
        if (path / META).exists():
            before = read_meta(path)
            if not before.same(meta):
                raise UsageError(f"--out {path} holds another measurement ({before.title}): give another folder")
            meta = before
            _cut_half_a_line(handle)
        else:
            os.ftruncate(handle, 0)
            write(path / META, meta)
        return cls(path, meta, read_rows(path), handle)

    def add(self, row: Row) -> None:
        """Keep a row; it is on the disk when this returns."""
        try:
            left = msgspec.json.encode(row) + b"\n"
            while left:  # a disk that fills up takes a part first
                left = left[os.write(self._handle, left) :]
            os.fsync(self._handle)
        except OSError as error:
            raise MeasureError(f"the result could not be written to {self.path / ROWS}: {error.strerror}") from error
        self.rows.append(row)

    def note_server(self, arm: str, facts: dict[str, Any]) -> None:
        """Keep what an arm's server says of itself."""
        self.servers[arm] = facts
        write(self.path / f"server-{arm}.json", facts)

    def close(self) -> None:
        """Let others write."""
        os.close(self._handle)


def _cut_half_a_line(handle: int) -> None:
    """Take away what a kill left of a line."""
    size = os.fstat(handle).st_size
    data = os.pread(handle, size, 0)
    end = data.rfind(b"\n") + 1
    if end < size:
        os.ftruncate(handle, end)


def write(path: Path, value: Any) -> None:
    """Write a file whole, or not at all."""
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()  # half a file on a full disk helps nobody
        raise MeasureError(f"the result could not be written to {path}: {error.strerror}") from error


def read_meta(path: Path) -> Meta:
    """Return what a folder's measurement was; raise `UsageError` in one line where it is none."""
    try:
        return msgspec.json.decode((path / META).read_bytes(), type=Meta)
    except OSError as error:
        raise UsageError(f"{path} holds no results: {META}: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path / META} is broken, or was written by another version: {error}") from error


def read_rows(path: Path) -> list[Row]:
    """Return the finished rows of a folder, the latest of each measurement; half a line at the end is what a kill left."""
    try:
        with (path / ROWS).open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError as error:
        raise UsageError(f"{path} holds no results: {ROWS}: {error.strerror}") from error
    rows: dict[Any, Row] = {}
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
        try:
            row = msgspec.json.decode(line, type=Row)
        except (msgspec.DecodeError, RecursionError) as error:
            raise UsageError(f"{path / ROWS}, line {number} is broken: {error}") from error
        rows[row.key] = row
    return list(rows.values())


def read_servers(path: Path) -> dict[str, dict[str, Any]]:
    """Return what the servers of a folder said of themselves, by arm."""
    found = {}
    for file in sorted(path.glob("server-*.json")):
        try:
            value = msgspec.json.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError):
            continue
        if isinstance(value, dict):
            found[file.stem.removeprefix("server-")] = value
    return found
