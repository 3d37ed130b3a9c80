"""Tell whether the kernel killed for want of memory: counters of the memory cgroup (v1 and v2), else of the machine."""

import os
from typing import Optional, Tuple

from .process import read_bytes

CGROUP_ROOT = "/sys/fs/cgroup"


def counter_files(cgroup: bytes, root: str = CGROUP_ROOT) -> Tuple[str, ...]:
    """Return the files that may hold the counter for a process with this /proc/PID/cgroup, best first.

    Inside a container the path is often the host's and cannot be seen; the mount's root is the container's group then.
    """
    files = []
    for line in cgroup.decode("utf-8", "replace").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        path = path.lstrip("/")
        if "memory" in controllers.split(","):
            files += [
                os.path.join(root, "memory", path, "memory.oom_control"),
                os.path.join(root, "memory", "memory.oom_control"),
            ]
        elif not controllers:
            files += [os.path.join(root, path, "memory.events"), os.path.join(root, "memory.events")]
    return (*dict.fromkeys(files), "/proc/vmstat")


def read_kills(path: str) -> Optional[int]:
    """Return the number after `oom_kill` in a counter file, or None where there is none."""
    for line in (read_bytes(path, 65536) or b"").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"oom_kill" and value.strip().isdigit():
            return int(value)
    return None


class OomCounter:
    """Kills in the memory group of one process since this was made; each accounts for one death."""

    def __init__(self, pid: int, root: str = CGROUP_ROOT) -> None:
        self._path: Optional[str] = None
        self._seen = 0
        for path in counter_files(read_bytes(f"/proc/{pid}/cgroup", 65536) or b"", root):
            kills = read_kills(path)
            if kills is not None:
                self._path, self._seen = path, kills
                break

    def take(self) -> bool:
        """Tell whether there was a kill that no death was put down to yet, and put it down to this one."""
        kills = read_kills(self._path) if self._path else None
        if kills is None or kills <= self._seen:
            return False
        self._seen += 1
        return True
