"""Read the kernel's log where that is allowed: whom it killed for want of memory, and what the GPU's driver reported.

Where it is not allowed, nothing is said: a container, or a host that keeps it to root (`kernel.dmesg_restrict`).
"""

import os
import re
import subprocess
import time
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

KMSG = "/dev/kmsg"
RECORD_BYTES = 8192
MOST_RECORDS = 100_000  # a kernel that talks faster than it is read must not hold us up
KERNEL_FACILITY = 8  # a record with a higher priority number was written by a program
PID_NAMESPACE_OF_BOOT = "pid:[4026531836]"  # PROC_PID_INIT_INO: only there are the kernel's pids ours
MOST_LINES = 500
TEXT_CHARS = 400
TOOL_S = 4.0
CLOCK_SLACK_S = 60.0  # the kernel's log has a clock of its own, which nobody sets
TOOLS = (("dmesg",), ("journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-n", "50000"))

_OOM = re.compile(r"Killed process (?P<pid>\d{1,10})(?: \((?P<name>.{0,64}?)\)(?=,? (?:total-vm|UID)))?")
_GROUP = re.compile(r"oom-kill:constraint=.*?task_memcg=(?P<group>[^,]{1,300}),task=.{0,64}?,pid=(?P<pid>\d{1,10})")
_XID = re.compile(r"NVRM: Xid \([^)]{1,60}\): \d+(?:,(?: pid='?(?P<pid>\d{1,10})\b)?)?")
_STAMPED = re.compile(r"^(?:<\d+>)?\[ *(?P<s>\d+\.\d+)\] (?:\S{1,80} kernel: )?(?P<text>.*)")


class Record(NamedTuple):
    """One line of the kernel. `at_s`: seconds since boot, by its own clock."""

    at_s: float
    text: str


class Kmsg:
    """The kernel's log from this moment on, or `whole`: from the oldest line that it still has."""

    def __init__(self, *, whole: bool = False, path: str = KMSG) -> None:
        self._fd = -1
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if not whole:
                os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self.close()

    def read(self) -> List[Record]:
        """Return what was written since the last call. Records that were lost meanwhile are passed over."""
        found = []
        for _ in range(MOST_RECORDS if self._fd >= 0 else 0):
            try:
                data = os.read(self._fd, RECORD_BYTES)
            except BrokenPipeError:  # overwritten before they were read
                continue
            except OSError:
                break
            if not data:  # some containers put /dev/null in its place
                break
            record = parse_record(data)
            if record is not None:
                found.append(record)
        return found

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def parse_record(data: bytes) -> Optional[Record]:
    """Return a record of /dev/kmsg that the kernel itself wrote, else None: any program of root can write there."""
    head, _, rest = data.partition(b";")
    fields = head.split(b",")
    try:
        priority, at_us = int(fields[0]), int(fields[2])
    except (ValueError, IndexError):
        return None
    if priority >= KERNEL_FACILITY:
        return None
    return Record(at_us / 1e6, rest.partition(b"\n")[0].decode("utf-8", "replace"))


def read_device() -> List[Record]:
    """Return all that the kernel still remembers, where its device may be read."""
    log = Kmsg(whole=True)
    records = log.read()
    log.close()
    return records


def read_whole() -> List[Record]:
    """Return all that the kernel still remembers: from its device, else by the tools that may read it for us."""
    records = read_device()
    for command in TOOLS:  # a member of `adm` may read the journal where dmesg is kept to root
        records = records or ask(command)
    return records


def ask(command: Iterable[str]) -> List[Record]:
    """Return the kernel's log as a tool prints it; nothing where that is not there, or may not."""
    try:
        done = subprocess.run(list(command), capture_output=True, timeout=TOOL_S, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []
    matches = (_STAMPED.match(line) for line in lines[-MOST_RECORDS:])
    return [Record(float(match["s"]), match["text"]) for match in matches if match]


def own_pids() -> bool:
    """Say whether the pids that the kernel writes to its log are those that are seen here."""
    try:
        return os.readlink("/proc/self/ns/pid") == PID_NAMESPACE_OF_BOOT
    except OSError:
        return False


def lines_of(records: Iterable[Record], end_s: Optional[float] = None) -> List[Dict[str, Any]]:
    """Return the records that matter as `KernelLine`s, the newest `MOST_LINES` of them; their pids as the kernel gave them.

    `end_s`: the end of the attempt on the clock of the boot; None: now.
    """
    until_s = time.monotonic() if end_s is None else end_s
    found = [{**line, "ago_s": round(until_s - at_s, 3)} for at_s, line in _matters(records)]
    return found[-MOST_LINES:]


def _matters(records: Iterable[Record]) -> Iterator[Tuple[float, Dict[str, Any]]]:
    group = ("", "")
    for record in records:
        if "oom-kill:" in record.text:
            told = _GROUP.search(record.text)
            group = (told["pid"], told["group"]) if told else group
            continue
        what = "oom_kill" if "Killed process " in record.text else "xid" if "NVRM: Xid " in record.text else ""
        found = (_OOM if what == "oom_kill" else _XID).search(record.text) if what else None
        if found is None:
            continue
        pid = found["pid"]
        line: Dict[str, Any] = {"what": what, "text": record.text[:TEXT_CHARS], "pid": int(pid) if pid else None}
        if what == "oom_kill":
            line.update(name=found["name"] or "", group=group[1] if pid == group[0] else "")
        yield record.at_s, line
