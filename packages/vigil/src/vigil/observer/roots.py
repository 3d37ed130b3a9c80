"""Find the process to watch, where our launcher did not start it: by text, by the log's writer, by the port's owner."""

import os
import stat
from typing import Callable, Dict, FrozenSet, Iterable, List, Optional, Sequence, Set, Tuple

from .exchange import Target
from .mains import Process, base_name, holds_sign, is_helper, is_wrapper, name_process
from .process import all_pids, ancestors, read_argv, read_bytes, read_exe, read_stat
from .sockets import find_holders, reachable, read_links, read_listeners

_WRITERS = (os.O_WRONLY, os.O_RDWR)


class Scan:
    """All processes at one moment, without ourselves and what stands above us."""

    def __init__(self) -> None:
        ours = ancestors(os.getpid())
        self.processes: Dict[int, Process] = {}
        for pid in all_pids():
            found = None if pid in ours else read_process(pid)
            if found:
                self.processes[pid] = found

    def topmost(self, pids: Iterable[int]) -> List[Process]:
        """Return those of `pids` that have none of the others above them, the oldest first."""
        wanted = set(pids)
        top = [self.processes[pid] for pid in wanted if pid in self.processes and not wanted & self.above(pid)]
        return sorted(top, key=lambda process: (process.start_ticks, process.pid))

    def above(self, pid: int) -> Set[int]:
        """Return the pids above a process."""
        found: Set[int] = set()
        process = self.processes.get(pid)
        while process and process.ppid not in found:
            found.add(process.ppid)
            process = self.processes.get(process.ppid)
        return found


def read_process(pid: int) -> Optional[Process]:
    """Return a live process as the rules for main processes want it."""
    found = read_stat(pid)
    if found is None or not found.alive:
        return None
    argv = read_argv(pid)
    return Process(pid, found.ppid, found.start_ticks, argv, name_process(found.comm, read_exe(pid), argv))


def find_by_text(text: str, signs: Sequence[str]) -> Optional[int]:
    """Return the topmost process with `text` in its command line: an engine before others, then the oldest."""
    scan = Scan()
    matching = [
        process.pid
        for process in scan.processes.values()
        if text in " ".join(process.argv) and not is_helper(process.names)
    ]
    top = scan.topmost(matching)
    best = sorted(top, key=lambda process: not holds_sign(process.argv, signs))
    return best[0].pid if best else None


def find_by_log(path: str) -> Optional[int]:
    """Return the topmost process that holds the log open for writing; of `server | tee log`, the server."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    scan = Scan()
    file = (status.st_dev, status.st_ino)
    name = base_name(os.path.realpath(path))
    writers = [pid for pid in scan.processes if _writes(pid, lambda link: base_name(link) == name, file)]
    helpers = [pid for pid in writers if is_helper(scan.processes[pid].names)]
    servers = [pid for pid in writers if pid not in helpers] or _pipe_writers(helpers, scan)
    top = scan.topmost(servers)
    return top[0].pid if top else None


def _writes(pid: int, looks_right: Callable[[str], bool], file: Optional[Tuple[int, int]]) -> bool:
    for name, link in read_links(pid) or ():
        if not looks_right(link) or not _is_writable(pid, name):
            continue
        try:
            status = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if file is None or (status.st_dev, status.st_ino) == file:
            return True
    return False


def _is_writable(pid: int, name: str) -> bool:
    for line in (read_bytes(f"/proc/{pid}/fdinfo/{name}", 4096) or b"").splitlines():
        if line.startswith(b"flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE in _WRITERS
    return False


def _pipe_writers(readers: Sequence[int], scan: Scan) -> List[int]:
    pipes: Set[str] = set()
    for pid in readers:
        pipes |= {link for name, link in read_links(pid) or () if name == "0" and link.startswith("pipe:")}
    if not pipes:
        return []
    others = [
        process for process in scan.processes.values() if process.pid not in readers and not is_helper(process.names)
    ]
    return [process.pid for process in others if _writes(process.pid, lambda link: link in pipes, None)]


def find_by_port(target: Target, signs: Sequence[str]) -> Optional[int]:
    """Return the process that the port belongs to: the topmost holder, or the engine's own process above it."""
    inodes: FrozenSet[int] = frozenset(
        found.inode for found in reachable(read_listeners(target.port) or (), target.host)
    )
    if not inodes:
        return None
    scan = Scan()
    holders = find_holders(inodes, scan.processes).by_inode
    top = scan.topmost(pid for pids in holders.values() for pid in pids)
    if not top:
        return None
    above = [scan.processes[pid] for pid in scan.above(top[0].pid) if pid in scan.processes]
    engines = [process.pid for process in above if not is_wrapper(process.names) and holds_sign(process.argv, signs)]
    best = scan.topmost(engines)
    return best[0].pid if best else top[0].pid
