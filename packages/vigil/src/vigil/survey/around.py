"""What the host of a server shows beside its log, for a diagnosis: the kernel's log, disks, a port's holder, GPUs' memory.

Taken when somebody asks, which may be long after the end: room, ports and GPUs are those of now.
"""

import os
import threading
import time
from typing import Any, Dict, FrozenSet, List, Optional

from ..launcher import kin, state
from ..observer import gpu
from ..observer.holders import Holders
from ..observer.kmsg import CLOCK_SLACK_S, lines_of, own_pids, read_whole
from ..observer.nvml import Nvml
from ..observer.process import TICKS_PER_S
from ..observer.rooms import RoomLook, places_of
from .interpreter import elsewhere
from .look import strings

ROOMS_S = 2.0
GPUS_S = 10.0  # a driver without persistence wakes its GPUs first
MOST_LINES = 32


def around(name: str, *, beside: bool = True, port: Optional[int] = None, gpus: bool = False) -> Dict[str, Any]:
    """Return what is seen now, as a `Seen`: `beside`, kernel and disks; who listens on `port`; who holds the GPUs' memory."""
    known = state.show(name)
    found: Dict[str, Any] = {}
    if beside:
        found["kernel"] = _kernel(known)
        found["rooms"] = _rooms(known)
    if port is not None:
        found["ports"] = [{"port": port, "holders": Holders().of_port(port)}]
    if gpus:
        ours = frozenset(pid for pid, _ in kin.find(known["life"])) if known["alive"] else frozenset()
        found["gpus"] = _gpus(ours)
    return found


def _kernel(known: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the kernel's lines from the life of the newest start: those on its main process first; none of another boot."""
    life = known["life"]
    if not life or known["rebooted"] or known["elsewhere"] or not own_pids():
        return []
    end_s = _end_s(known["exit"])
    began_s = life["main"]["start_ticks"] / TICKS_PER_S - CLOCK_SLACK_S
    until_s = end_s + CLOCK_SLACK_S
    lines = lines_of((one for one in read_whole() if began_s <= one.at_s <= until_s), end_s)
    for line in lines:
        line["ours"] = True if line["pid"] == life["main"]["pid"] else None
    newest = lines[-MOST_LINES:]
    return [line for line in lines if line["ours"] and line not in newest][-1:] + newest


def _end_s(told: Dict[str, Any]) -> float:
    """Return when it ended, on the clock of the boot: now where it lives."""
    at_wall_s = told.get("at_wall_s")
    ago_s = time.time() - at_wall_s if isinstance(at_wall_s, (int, float)) else 0.0
    return time.monotonic() - max(0.0, ago_s)


def _rooms(known: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the file systems where a start writes, as it found them itself and as its command names them."""
    words = strings(known["plan"].get("command"))
    if elsewhere(words):
        return []  # a container has disks of its own
    snapshot = state.read_json(os.path.join(known["folder"], state.SNAPSHOT))
    disks = snapshot.get("disks")
    kept = [path for path in disks if isinstance(path, str)] if isinstance(disks, dict) else []
    command = snapshot.get("command")
    cwd = command.get("cwd") if isinstance(command, dict) else None
    log = [os.path.dirname(known["life"]["log"])] if known["life"] else []
    here = cwd if isinstance(cwd, str) and os.path.isabs(cwd) else "/"
    return RoomLook().within([*kept, *places_of(words, os.environ, here, log)], ROOMS_S)


def _gpus(ours: FrozenSet[int]) -> List[Dict[str, Any]]:
    """Return who holds the GPUs' memory; nothing where there is no driver, or it does not answer."""
    found: List[gpu.Gpu] = []

    def see() -> None:
        try:
            found.extend(gpu.look(Nvml()))
        except (OSError, AttributeError):
            return

    thread = threading.Thread(target=see, daemon=True)
    thread.start()
    thread.join(GPUS_S)
    return gpu.tell(found, ours, Holders().tell)
