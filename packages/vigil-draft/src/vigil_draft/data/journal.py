"""The answers as they come, one line each, synced every second: what no kill takes away. A torn last line is asked again."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from vigil.errors import UsageError

NAME = "answers.jsonl"


class Document(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Token ids, and which of them the target wrote, as pairs of a beginning and an end."""

    ids: list[int]
    spans: list[tuple[int, int]]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the conversation number `n`. `lost`: why there is no document; `cut`: by which limit an answer ended."""

    n: int
    documents: list[Document] = []
    lost: str | None = None
    cut: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


class Journal:
    """An open journal. Invariant: `at` knows the place of each whole line, and no other process writes to it meanwhile."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle
        self.at: dict[int, int] = {}
        self._end = 0
        self._dirty = False

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the journal of a folder, and take a torn last line away.

        Raises:
            UsageError: It cannot be opened, another process has it, or a line in its middle is damaged.

        """
        path = folder / NAME
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UsageError(f"--out {folder}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = cls(path, handle)
            found._recall()
        except BlockingIOError as error:
            os.close(handle)
            raise UsageError(f"--out {folder}: another vigil is preparing into it") from error
        except BaseException:
            os.close(handle)
            raise
        return found

    def _recall(self) -> None:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = _decode(line) if line.endswith(b"\n") else None
                except (msgspec.DecodeError, RecursionError):
                    entry = None
                if entry is None and file.read(1):
                    raise UsageError(
                        f"{self.path}, line {number}: damaged; without that line, its prompt is asked again"
                    )
                if entry is not None:
                    self.at[entry.n] = self._end
                    self._end += len(line)
        os.ftruncate(self._handle, self._end)

    def add(self, entry: Entry) -> None:
        """Write an entry; raises `OSError` where the disk does not take it, which leaves a torn line at most."""
        line = memoryview(_encode(entry) + b"\n")
        written = 0
        while written < len(line):
            written += os.write(self._handle, line[written:])
        self.at[entry.n] = self._end
        self._end += written
        self._dirty = True

    def sync(self) -> None:
        """Let the disk have what was written."""
        if self._dirty:
            self._dirty = False
            os.fsync(self._handle)

    def entries(self) -> Iterator[Entry]:
        """Yield what there is, in the order of the conversations."""
        with self.path.open("rb") as file:
            for number in sorted(self.at):
                file.seek(self.at[number])
                yield _decode(file.readline())

    def close(self) -> None:
        """Let another process have it; what was added and not synced since may be lost with the machine."""
        os.close(self._handle)
