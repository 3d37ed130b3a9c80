"""Who runs below whom, and signals that reach this very process and no other. Part of the launcher: see `parent`."""

import _signal as signals  # type: ignore[import-not-found]  # typeshed leaves the private module out
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Set, Tuple

    Process = Tuple[int, int, int, bytes]  # parent, session, start ticks, name

COMM = b"vigil-launcher"
STAT_FIELDS = 20  # of /proc/PID/stat behind the name, up to the start time


def read(path: "str") -> bytes:
    """Return a small file of /proc or /sys; empty where it cannot be read."""
    try:
        with open(path, "rb", 0) as file:
            return file.read(65536) or b""
    except OSError:
        return b""


def start_ticks(pid: int) -> "Optional[int]":
    """Return the start time of a process in clock ticks since boot, or None where it is gone."""
    try:
        return int(read("/proc/%d/stat" % pid).rpartition(b")")[2].split()[19])
    except (ValueError, IndexError):
        return None


def table() -> "Dict[int, Process]":
    """Return (parent, session, start ticks, name) of all living processes by pid."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        head, _, tail = read("/proc/%s/stat" % name).rpartition(b")")
        fields = tail.split()
        # A dead leader whose threads run on looks like a zombie, too: its count of threads tells.
        if len(fields) < STAT_FIELDS or fields[0] == b"X" or (fields[0] == b"Z" and int(fields[17]) <= 1):
            continue
        found[int(name)] = (int(fields[1]), int(fields[3]), int(fields[19]), head.partition(b"(")[2])
    return found


def below(roots: "Set[int]", processes: "Dict[int, Process]") -> "List[Tuple[int, int]]":
    """Return (pid, start ticks) of what runs below `roots`, parents first; another launcher's tree is not ours to end."""
    children: "Dict[int, List[int]]" = {}
    for pid, (parent, _, _, comm) in processes.items():
        if comm != COMM:
            children.setdefault(parent, []).append(pid)
    found: "Dict[int, int]" = {}
    row = sorted(roots)
    while row:
        row = [pid for parent in row for pid in children.get(parent, ()) if pid not in found and pid not in roots]
        found.update({pid: processes[pid][2] for pid in row})
    return list(found.items())


def send(pid: int, ticks: "Optional[int]", number: int) -> bool:
    """Signal this very process, not another one that was given its pid; return False where it is gone.

    Raise `PermissionError` where it is somebody else's.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (AttributeError, OSError):  # a kernel before 5.3, or a sandbox
        handle = -1
    try:
        if pid <= 1 or start_ticks(pid) != ticks:
            return False
        if handle < 0:
            os.kill(pid, number)
        else:
            signals.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def ask(pid: int, ticks: "Optional[int]", number: int) -> None:
    """Send a signal, and wake a stopped process so that it can act on it."""
    try:
        if send(pid, ticks, number) and number == signals.SIGTERM:
            send(pid, ticks, signals.SIGCONT)
    except OSError:
        pass
