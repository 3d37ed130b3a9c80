"""Say which process listens on a port of this host."""

from typing import Any, Dict, List, Optional

from ..observer.exchange import is_here, make_target
from ..observer.process import all_pids, read_stat
from ..observer.sockets import find_holders, reachable, read_listeners


def listener(port: int, host: Optional[str] = None) -> Dict[str, Any]:
    """Say whether something listens on the port here, and which process, as far as that can be seen.

    `host`: only what would answer there counts; a host that is not this machine is not looked at.
    """
    pids = answering(port, host)
    if pids is None:
        return {"listening": False}
    pid = pids[0] if pids else None
    stat = read_stat(pid) if pid else None
    return {"listening": True, "pid": pid, "name": stat.comm if stat else ""}


def answering(port: int, host: Optional[str] = None) -> Optional[List[int]]:
    """Return who listens on the port here, the lowest pid of each socket; [] where that may not be seen, None for nobody."""
    found = read_listeners(port) or []
    if host:
        answers_at = make_target("http", host, port).host
        found = reachable(found, answers_at) if is_here(answers_at) else []
    if not found:
        return None
    held = find_holders(frozenset(one.inode for one in found), all_pids()).by_inode
    return sorted({min(pids) for pids in held.values() if pids})
