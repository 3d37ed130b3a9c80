"""Add up what a tree of processes uses: processor time, bytes moved, memory."""

from typing import Dict, Iterable, NamedTuple, Tuple

from .process import Stat, read_bytes

_IO_FIELDS = (b"rchar:", b"wchar:", b"read_bytes:", b"write_bytes:")


class Use(NamedTuple):
    """Sums over the tree. `cpu_s` and `io_bytes` count the dead as well, so that they never fall."""

    cpu_s: float
    io_bytes: int
    rss_bytes: int
    processes: int


def read_io(pid: int) -> int:
    """Return the bytes that a process moved, 0 where it may not be seen.

    System calls and disk are added up: reads from the page cache show in the first only, page faults of mapped weights
    in the second only. The number says that something moved, not how much the disk did.
    """
    total = 0
    for line in (read_bytes(f"/proc/{pid}/io", 4096) or b"").splitlines():
        name, _, value = line.partition(b" ")
        if name in _IO_FIELDS and value.isdigit():
            total += int(value)
    return total


class TreeMeter:
    """Measures one tree over its life."""

    def __init__(self) -> None:
        self._last: Dict[Tuple[int, int], Tuple[float, int]] = {}
        self._gone_cpu_s = 0.0
        self._gone_io = 0

    def measure(self, stats: Iterable[Stat]) -> Use:
        """Return the sums for the processes that live now."""
        now: Dict[Tuple[int, int], Tuple[float, int]] = {}
        rss = 0
        for stat in stats:
            key = (stat.pid, stat.start_ticks)
            now[key] = (stat.cpu_s, max(read_io(stat.pid), self._last.get(key, (0.0, 0))[1]))
            rss += stat.rss_bytes
        for key in self._last.keys() - now.keys():
            cpu_s, io_bytes = self._last[key]
            self._gone_cpu_s += cpu_s
            self._gone_io += io_bytes
        self._last = now
        cpu_s = self._gone_cpu_s + sum(value[0] for value in now.values())
        io_bytes = self._gone_io + sum(value[1] for value in now.values())
        return Use(round(cpu_s, 3), io_bytes, rss, len(now))
