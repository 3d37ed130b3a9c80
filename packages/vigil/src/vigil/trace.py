"""A trace: a file of facts, JSON lines, with one header line; replaying it gives the same verdicts."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from vigil.errors import TraceError
from vigil.facts import AnyFact
from vigil.plan import Plan

SCHEMA = 1
MOST_BYTES = 64 << 20  # a trace that grew so far has told its story; the watching goes on without it


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a trace. `plan` carries no environment values and no secrets; `began` is Unix seconds."""

    schema: int = SCHEMA
    vigil: str = ""
    began: float = 0.0
    plan: Plan
    slowest_quiet_s: dict[str, float] = msgspec.field(default_factory=dict)


class _Mark(msgspec.Struct, frozen=True):
    """What every header has, whatever its schema: JSON of another kind has none."""

    schema: int


class Writer:
    """Appends facts to a trace file; a full disk is reported once and never stops the watching."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._encoder = msgspec.json.Encoder()
        self._bytes = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)  # log lines are in it
        self._file: IO[bytes] | None = os.fdopen(handle, "wb", buffering=0)
        self._put(header)

    def add(self, fact: AnyFact) -> str | None:
        """Write one fact; return what went wrong the first time that something does."""
        return self._put(fact)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _put(self, value: AnyFact | Header) -> str | None:
        if self._file is None:
            return None
        data = self._encoder.encode(value) + b"\n"
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            self.close()
            return f"the trace {self.path} is full ({MOST_BYTES >> 20} MiB) and goes no further"
        try:
            self._file.write(data)
        except OSError as error:
            self.close()
            return f"the trace {self.path} cannot be written: {error.strerror}"
        return None


def read(path: Path) -> tuple[Header, Iterator[AnyFact]]:
    """Open a trace.

    Returns its header and an iterator of its facts. A last line that was cut off (the writer died) is left out.
    Raises `TraceError` naming the line, for anything else that is not a trace.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise TraceError(f"cannot read {path}: {error.strerror}") from error
    try:
        return _header(path, file.readline()), _facts(path, file)
    except TraceError:
        file.close()
        raise


def _header(path: Path, line: bytes) -> Header:
    if not line.strip():
        raise TraceError(f"{path} is empty: no trace")
    try:
        schema = msgspec.json.decode(line, type=_Mark).schema
        if schema == SCHEMA:
            return msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is not a trace: line 1: {error}") from error
    raise TraceError(f"{path} has schema {schema}; this vigil reads {SCHEMA}")


def _facts(path: Path, file: IO[bytes]) -> Iterator[AnyFact]:
    decode = msgspec.json.Decoder(AnyFact).decode
    with file:
        for number, line in enumerate(file, 2):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if not line.endswith(b"\n"):
                    return
                raise TraceError(f"{path}, line {number}: {error}") from error
