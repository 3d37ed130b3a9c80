"""Read one process from /proc: its identity, parent, name and command line."""

import os
import time
from typing import FrozenSet, List, NamedTuple, Optional, Set, Tuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ARGV_BYTES = 64 * 1024
LISTING_S = 5.0  # a listing is made this often even when the kernel's counter says that nothing was started


class Stat(NamedTuple):
    """What /proc/PID/stat tells. A pid alone is no identity: (pid, start_ticks) is one, within a boot."""

    pid: int
    comm: str
    state: str
    ppid: int
    start_ticks: int
    cpu_s: float
    rss_bytes: int

    @property
    def alive(self) -> bool:
        """Tell whether it still runs; a zombie does not."""
        return self.state not in "ZXx"


def read_bytes(path: str, limit: int) -> Optional[bytes]:
    """Return up to `limit` bytes of a file in /proc, or None where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe in its place must not hold us up
    except OSError:
        return None
    try:
        parts = []
        left = limit
        while left > 0:
            part = os.read(fd, min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_stat(pid: int) -> Optional[Stat]:
    """Return the process's stat, or None where there is no such process."""
    data = read_bytes(f"/proc/{pid}/stat", 4096)
    if not data:
        return None
    right = data.rfind(b")")  # a name may hold brackets and spaces itself
    comm = data[data.find(b"(") + 1 : right].decode("utf-8", "replace")
    rest = data[right + 2 :].split()
    try:
        return Stat(
            pid=pid,
            comm=comm,
            state=rest[0].decode("ascii"),
            ppid=int(rest[1]),
            start_ticks=int(rest[19]),
            cpu_s=(int(rest[11]) + int(rest[12])) / TICKS_PER_S,
            rss_bytes=int(rest[21]) * PAGE_BYTES,
        )
    except (IndexError, ValueError):
        return None


def is_alive(pid: int, start_ticks: int) -> bool:
    """Tell whether this very process still runs, not another one that was given its pid."""
    stat = read_stat(pid)
    return stat is not None and stat.alive and stat.start_ticks == start_ticks


def read_argv(pid: int) -> Tuple[str, ...]:
    """Return the command line as it stands now; empty for kernel threads and what may not be read."""
    data = read_bytes(f"/proc/{pid}/cmdline", ARGV_BYTES)
    if not data:
        return ()
    return tuple(part.decode("utf-8", "replace") for part in data.rstrip(b"\0").split(b"\0"))


def read_environ(pid: int) -> List[Tuple[str, str]]:
    """Return the environment the process was started with; empty where it may not be read."""
    data = read_bytes(f"/proc/{pid}/environ", 1 << 20) or b""
    pairs = (part.decode("utf-8", "replace").partition("=") for part in data.split(b"\0") if part)
    return [(name, value) for name, _, value in pairs]


def read_exe(pid: int) -> str:
    """Return the path of the program, or an empty string where it may not be seen."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def read_cwd(pid: int) -> str:
    """Return the working folder, or an empty string where it may not be seen."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def sees_our_files(pid: int) -> bool:
    """Tell whether a process sees the file systems that we see; False also where that may not be known."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return False


def age_s(start_ticks: int) -> float:
    """Return how long ago a process with this start time began, in seconds."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / TICKS_PER_S)


def all_pids() -> List[int]:
    """List every process that /proc shows."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def ancestors(pid: int) -> FrozenSet[int]:
    """Return the process and everything above it."""
    found: Set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        stat = read_stat(pid)
        pid = stat.ppid if stat else 0
    return frozenset(found)


def read_last_pid() -> bytes:
    """Return the kernel's word for the youngest pid, as it is written; empty where there is none."""
    return (read_bytes("/proc/loadavg", 256) or b"").rpartition(b" ")[2]


class Arrivals:
    """Tell which processes appeared since the last look.

    A listing of /proc is the dear part, so it is skipped while the kernel's counter of pids stands still. Some
    containers show a counter of their own making: a listing is made every `LISTING_S` seconds whatever it says, and at
    every look while it is `doubted`.
    """

    def __init__(self) -> None:
        self._known: Set[str] = set()
        self._forgotten: Set[str] = set()
        self._last_pid = b""
        self._listed_s = float("-inf")
        self.doubted = True

    def look(self, now: float) -> List[int]:
        """Return the pids that are new, in no order."""
        last_pid = read_last_pid()
        if last_pid == self._last_pid and not self.doubted and now - self._listed_s < LISTING_S:
            return []
        names = set(os.listdir("/proc"))
        fresh = {name for name in names - self._known if name.isdigit()}
        if self._known and fresh - self._forgotten:  # something was started: did the counter say so?
            self.doubted = last_pid == self._last_pid and read_last_pid() == last_pid
        self._known = names
        self._forgotten.clear()
        self._last_pid = last_pid
        self._listed_s = now
        return [int(name) for name in fresh]

    def forget(self, pid: int) -> None:
        """Let a pid count as new when it is seen again: its process ended."""
        self._known.discard(str(pid))
        self._forgotten.add(str(pid))
