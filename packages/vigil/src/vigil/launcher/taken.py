"""Say which process listens on a port of this host."""

from typing import Any, Dict, Optional

from ..observer.exchange import is_here, make_target
from ..observer.process import all_pids, read_stat
from ..observer.sockets import find_holders, reachable, read_listeners


def listener(port: int, host: Optional[str] = None) -> Dict[str, Any]:
    """Say whether something listens on the port here, and which process, as far as that can be seen.

    `host`: only what would answer there counts; a host that is not this machine is not looked at.
    """
    found = read_listeners(port) or []
    if host:
        answers_at = make_target("http", host, port).host
        found = reachable(found, answers_at) if is_here(answers_at) else []
    if not found:
        return {"listening": False}
    held = find_holders(frozenset(one.inode for one in found), all_pids()).by_inode
    pid = min((pid for pids in held.values() for pid in pids), default=None)
    stat = read_stat(pid) if pid else None
    return {"listening": True, "pid": pid, "name": stat.comm if stat else ""}
