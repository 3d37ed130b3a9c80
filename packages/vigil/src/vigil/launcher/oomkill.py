"""Tell whether the kernel killed one process for want of memory, by what it writes down. Part of the launcher: see `parent`."""

import os

from .family import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

PID_NAMESPACE_OF_BOOT = "pid:[4026531836]"  # PROC_PID_INIT_INO: only there are the kernel's pids ours
KERNEL_FACILITY = 8  # a record of /dev/kmsg with a higher priority number was written by a program


class Deaths:
    """Tells a kill by the kernel for want of memory from any other, from the moment at which this was made."""

    def __init__(self) -> None:
        self._kills = count_oom_kills()
        try:
            self._kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._kmsg, 0, os.SEEK_END)
        except OSError:
            self._kmsg = -1

    def is_oom(self, pid: int) -> bool:
        """Say whether the kernel killed `pid`: by its own log where that is whole, else by the group's count."""
        said = self._read_kmsg(b"Killed process %d " % pid) if self._kmsg >= 0 else None
        if said is not None:
            return said
        kills = count_oom_kills()
        return kills is not None and self._kills is not None and kills > self._kills

    def _read_kmsg(self, needle: bytes) -> "Optional[bool]":
        whole = own_pids()
        while True:
            try:
                record = os.read(self._kmsg, 8192)
            except (
                BrokenPipeError
            ):  # records were overwritten before they were read: go on with the oldest that is left
                whole = False
                continue
            except OSError:
                return False if whole else None
            if not record:  # some containers put /dev/null in its place
                return None
            head, _, text = record.partition(b";")
            if needle in text and int(head.partition(b",")[0]) < KERNEL_FACILITY and own_pids():
                return True


def own_pids() -> bool:
    """Say whether the pids that the kernel writes to its log are those that are seen here."""
    try:
        return os.readlink("/proc/self/ns/pid") == PID_NAMESPACE_OF_BOOT
    except OSError:
        return False


def count_oom_kills() -> "Optional[int]":
    """Return how often the kernel killed in our memory group (v2 or v1), or None where that cannot be read."""
    root = "/sys/fs/cgroup/"
    for line in read("/proc/self/cgroup").decode("utf-8", "replace").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            files = [root + "memory%s/memory.oom_control" % path, root + "memory/memory.oom_control"]
        elif not controllers:
            files = [root + "%s/memory.events" % path, root + "memory.events"]
        else:
            continue
        for file in files:
            name, _, rest_of = read(file).partition(b"oom_kill ")
            if rest_of and (not name or name.endswith(b"\n")):
                return int(rest_of.split()[0])
    return None
