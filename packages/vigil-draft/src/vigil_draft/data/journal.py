"""The answers as they come, one line each, synced every second: what no kill takes away. A torn last line is asked again."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

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

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self.at: dict[int, int] = {}
        self._dirty = False

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the journal of a folder, and take a torn last line away.

        Raises:
            UsageError: It cannot be opened, another process has it, or a line in its middle is damaged.

        """
        path = folder / NAME
        try:
            file = path.open("a+b")
        except OSError as error:
            raise UsageError(f"--out {folder}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = cls(path, file)
            found._recall()
        except BlockingIOError as error:
            file.close()
            raise UsageError(f"--out {folder}: another vigil is preparing into it") from error
        except BaseException:
            file.close()
            raise
        return found

    def _recall(self) -> None:
        self._file.seek(0)
        good = 0
        for number, line in enumerate(self._file, 1):
            try:
                entry = _decode(line) if line.endswith(b"\n") else None
            except (msgspec.DecodeError, RecursionError):
                entry = None
            if entry is None:
                if self._file.read(1):
                    raise UsageError(
                        f"{self.path}, line {number}: damaged; take that line out, and its prompt is asked again"
                    )
                break
            self.at[entry.n] = good
            good += len(line)
        self._file.truncate(good)
        self._file.seek(0, os.SEEK_END)

    def add(self, entry: Entry) -> None:
        """Write an entry; raises `OSError` where the disk does not take it, which leaves the line torn at most."""
        place = self._file.seek(0, os.SEEK_END)
        self._file.write(_encode(entry) + b"\n")
        self._file.flush()
        self.at[entry.n] = place
        self._dirty = True

    def sync(self) -> None:
        """Let the disk have what was written."""
        if self._dirty:
            self._dirty = False
            os.fsync(self._file.fileno())

    def entries(self) -> Iterator[Entry]:
        """Yield what there is, in the order of the conversations."""
        self._file.flush()
        with self.path.open("rb") as file:
            for number in sorted(self.at):
                file.seek(self.at[number])
                yield _decode(file.readline())

    def close(self) -> None:
        """Sync and close."""
        try:
            self.sync()
        finally:
            self._file.close()
