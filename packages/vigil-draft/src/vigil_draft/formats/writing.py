"""Write safetensors files and folders: by ranges, never a whole tensor in memory; beside, and renamed when all is on the disk."""

import errno
import hashlib
import json
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vigil.scout.headers import BITS
from vigil.screen import plain, size
from vigil_draft.errors import DraftError
from vigil_draft.formats.folders import Stored

CHUNK_BYTES = 4 << 20
ALIGNED_BYTES = 8
_FULL = (errno.ENOSPC, errno.EDQUOT)
Source = Stored | tuple[str, tuple[int, ...], bytes]
"""A tensor in a file, or a small one that was made: its type, its shape, its bytes."""


def bytes_of(source: Source) -> int:
    """Return how many bytes a tensor has."""
    return source.bytes if isinstance(source, Stored) else len(source[2])


def write_safetensors(path: Path, tensors: dict[str, Source]) -> dict[str, str]:
    """Write tensors into one file; return the SHA-256 of each. The widest types come first, so that each stands aligned.

    Raises:
        DraftError: A source changed while it was read.
        OSError: The file could not be written.

    """
    names = sorted(tensors, key=lambda name: (-BITS.get(_kind(tensors[name])[0], 0), name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in names:
        dtype, shape = _kind(tensors[name])
        begin, end = end, end + bytes_of(tensors[name])
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED_BYTES)
    found: dict[str, str] = {}
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            digest = hashlib.sha256()
            for part in parts_of(tensors[name]):
                digest.update(part)
                file.write(part)
            found[name] = digest.hexdigest()
        file.flush()
        os.fsync(file.fileno())
    return found


def _kind(source: Source) -> tuple[str, tuple[int, ...]]:
    return (source.dtype, source.shape) if isinstance(source, Stored) else source[:2]


def parts_of(source: Source) -> Iterator[bytes]:
    """Yield the bytes of a tensor, a few MiB at a time.

    Raises:
        DraftError: Its file is shorter than it was, or cannot be read.

    """
    if not isinstance(source, Stored):
        yield source[2]
        return
    try:
        with Path(source.path).open("rb") as file:
            file.seek(source.begin)
            left = source.bytes
            while left:
                part = file.read(min(left, CHUNK_BYTES))
                if not part:
                    raise DraftError(f"{plain(source.path, 200)} became shorter while it was read")
                left -= len(part)
                yield part
    except OSError as error:
        raise DraftError(f"{plain(source.path, 200)} cannot be read: {error.strerror}") from error


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON that people can read, down to the disk."""
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(value, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def appearing(folder: Path, wanted_bytes: int) -> Iterator[Path]:
    """Give a folder beside `folder` to write into; it takes its name when the block ends, and is gone where that fails.

    Raises:
        DraftError: `folder` is there already, or the disk is full, or it cannot be written.

    """
    shown = plain(str(folder), 200)
    if os.path.lexists(folder):
        raise DraftError(f"{shown} is there already: name a folder that is not")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder.parent).free
        if free < wanted_bytes:
            raise DraftError(
                f"{shown} needs {size(wanted_bytes)}, and the disk has {size(free)} left: nothing was written"
            )
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.", suffix=".part", dir=folder.parent))
    except OSError as error:
        raise _unwritten(shown, error) from error
    try:
        yield beside
        _finish(beside, folder)
    except OSError as error:
        raise _unwritten(shown, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _finish(beside: Path, folder: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    beside.chmod(0o777 & ~mask)
    _sync(beside)
    beside.rename(folder)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritten(shown: str, error: OSError) -> DraftError:
    if error.errno in _FULL:
        return DraftError(f"the disk is full: {shown} was not written")
    return DraftError(f"{shown} cannot be written: {error.strerror or error}")
