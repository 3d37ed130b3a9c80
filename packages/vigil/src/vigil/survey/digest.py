"""Read files of others without trusting them: regular ones only, never more than a limit, and fingerprints that cost little."""

import hashlib
import os
import stat
import time
from typing import Optional, Tuple

END_BYTES = 64 << 10
PART_BYTES = 1 << 20


class Budget:
    """What a look may still cost: seconds by the monotonic clock, and bytes read."""

    def __init__(self, seconds: float, size_bytes: int) -> None:
        self._until_s = time.monotonic() + seconds
        self.left_bytes = size_bytes

    @property
    def spent(self) -> bool:
        """Tell whether nothing more may be read."""
        return self.left_bytes <= 0 or time.monotonic() >= self._until_s


def read_small(path: str, limit: int) -> Optional[bytes]:
    """Return up to `limit` bytes of a regular file, or None where it is none or cannot be read."""
    opened = _open(path)
    if opened is None:
        return None
    handle, _ = opened
    parts = []
    try:
        while limit > 0:
            part = os.read(handle, min(limit, PART_BYTES))
            if not part:
                break
            parts.append(part)
            limit -= len(part)
    except OSError:
        return None
    finally:
        os.close(handle)
    return b"".join(parts)


def tail(path: str, limit: int) -> bytes:
    """Return the last `limit` bytes of a regular file; none where it is none, or cannot be read."""
    opened = _open(path)
    if opened is None:
        return b""
    handle, status = opened
    try:
        return os.pread(handle, limit, max(0, status.st_size - limit))
    except OSError:
        return b""
    finally:
        os.close(handle)


def whole_sha256(path: str, limit: int, budget: Optional[Budget] = None) -> Optional[bytes]:
    """Return the SHA-256 of a regular file of at most `limit` bytes, or None; what is read is taken off `budget`."""
    opened = _open(path)
    if opened is None:
        return None
    handle, status = opened
    found, read = hashlib.sha256(), 0
    try:
        while status.st_size <= limit and read <= limit:  # it may grow while it is read
            part = os.read(handle, PART_BYTES)
            if not part:
                return found.digest()
            found.update(part)
            read += len(part)
    except OSError:
        return None
    finally:
        os.close(handle)
        if budget is not None:
            budget.left_bytes -= read
    return None


def ends_sha256(path: str) -> Optional[str]:
    """Return a hash over the size, the first and the last 64 KiB of a regular file, or None: cheap, whatever the size."""
    opened = _open(path)
    if opened is None:
        return None
    handle, status = opened
    found = hashlib.sha256(b"%d" % status.st_size)
    try:
        found.update(os.pread(handle, END_BYTES, 0))
        found.update(os.pread(handle, END_BYTES, max(0, status.st_size - END_BYTES)))
    except OSError:
        return None
    finally:
        os.close(handle)
    return found.hexdigest()


def _open(path: str) -> Optional[Tuple[int, os.stat_result]]:
    """Open a regular file; a pipe or a device is neither waited for nor read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode):
        return handle, status
    os.close(handle)
    return None
