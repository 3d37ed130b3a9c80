"""Say which process listens on a port of this host."""

from typing import Any, Dict

from .process import all_pids, read_stat
from .sockets import find_holders, read_listeners


def listener(port: int) -> Dict[str, Any]:
    """Say whether something listens on the port here, and which process, as far as that can be seen."""
    found = read_listeners(port) or []
    if not found:
        return {"listening": False}
    held = find_holders(frozenset(one.inode for one in found), all_pids()).by_inode
    pid = min((pid for pids in held.values() for pid in pids), default=None)
    stat = read_stat(pid) if pid else None
    return {"listening": True, "pid": pid, "name": stat.comm if stat else ""}
