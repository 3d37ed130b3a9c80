"""Who holds something that a server wants, a port or a GPU's memory: pid, command, user, and whether vigil started it."""

import os
from typing import Any, Dict, FrozenSet, List, Optional, Tuple

from .life import read_boot_id, read_life, servers_folder
from .process import all_pids, ancestors, read_argv, read_stat
from .redact import Redactor
from .sockets import find_holders, read_listener_uids, read_listeners

ARGV_WORDS = 40
WORD_CHARS = 300
MOST_HOLDERS = 16
MOST_SERVERS = 200


class Holders:
    """Tells who a process is. What vigil started is read once, from the state folder `servers`."""

    def __init__(self, redactor: Optional[Redactor] = None, servers: Optional[str] = None) -> None:
        self._redactor = redactor or Redactor()
        self._folder = servers or servers_folder()
        self._names: Optional[Dict[Tuple[int, int], str]] = None

    def tell(self, pid: int, **more: Any) -> Dict[str, Any]:
        """Return a `Holder`: what may be seen of a process, without secrets."""
        stat = read_stat(pid)
        argv = self._redactor.clean_argv(read_argv(pid)[:ARGV_WORDS])
        return {
            "pid": pid,
            "name": stat.comm if stat else "",
            "argv": [word[:WORD_CHARS] for word in argv],
            "uid": _uid(pid),
            "server": self.server_of(pid),
            **more,
        }

    def server_of(self, pid: int) -> str:
        """Return the name under which vigil started a process or what is above it; empty where it did not."""
        if self._names is None:
            self._names = _read_names(self._folder)
        if not self._names:
            return ""
        for one in ancestors(pid):
            stat = read_stat(one)
            name = self._names.get((one, stat.start_ticks)) if stat else None
            if name:
                return name
        return ""

    def of_port(self, port: int) -> List[Dict[str, Any]]:
        """Return who listens on a port of this host now; where the process may not be seen, its user alone."""
        listeners = read_listeners(port) or []
        inodes: FrozenSet[int] = frozenset(one.inode for one in listeners)
        if not inodes:
            return []
        by_inode = find_holders(inodes, all_pids()).by_inode
        pids = sorted({min(pids) for pids in by_inode.values()})
        if pids:
            return [self.tell(pid) for pid in pids[:MOST_HOLDERS]]
        return [{"pid": None, "uid": uid} for uid in read_listener_uids(port)] or [{"pid": None}]


def _read_names(folder: str) -> Dict[Tuple[int, int], str]:
    """Return the launchers and main processes of this boot that vigil wrote down, by name."""
    found: Dict[Tuple[int, int], str] = {}
    try:
        names = os.listdir(folder)[:MOST_SERVERS]
    except OSError:
        return found
    boot_id = read_boot_id()
    for name in names:
        life = read_life(os.path.join(folder, name, "current"))
        if life is not None and life.boot_id == boot_id:
            found.update({life.launcher: name, life.main: name})
    found.pop((0, 0), None)
    return found


def _uid(pid: int) -> Optional[int]:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
