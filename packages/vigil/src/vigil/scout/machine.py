"""See the host that a command would start on: port, GPUs, rooms, limits, settings, the program that runs, the weights' sizes.

The driver and the disks are asked in threads of their own while the rest is looked at: either may hang for ever.
"""

import os
import re
import resource
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from ..launcher.taken import answering
from ..observer.holders import Holders
from ..observer.life import state_folder
from ..observer.rooms import RoomLook, places_of
from ..survey.digest import read_small
from ..survey.interpreter import elsewhere, scheduled
from ..survey.machine import basics
from . import engine, gpus, settings, weights
from .pieces import plain

if TYPE_CHECKING:
    from .desk import Question

ROOMS_S = 0.5
DRIVER_S = 3.0  # a driver without persistence wakes its GPUs first
_SWAP = re.compile(rb"^SwapTotal:\s+(\d{1,12}) kB", re.MULTILINE)
_HOSTS_OWN = frozenset({"docker", "podman", "nerdctl"})
_PUBLISHES = ("-p", "--publish", "--network", "--net")


def see(question: "Question") -> Dict[str, Any]:
    """Return what was seen, as a `HostSeen`. What cannot be looked at is None, with a line in `troubles`."""
    behind = elsewhere(question.before)
    sent = scheduled(question.before, question.place.env)
    outside = behind is not None or sent is not None
    found: Dict[str, Any] = {
        "outside": outside,
        "behind": plain(behind or sent or ""),
        "sent": behind is None,
        "troubles": [],
    }
    late = Late(gpus.see)
    _put(found, "port", lambda: port(question))
    _put(found, "settings", lambda: settings.see(question.place.env))
    if not outside:
        _put(found, "sizes", lambda: weights.see(question))
        _put(found, "program", lambda: engine.see(question))
        _put(found, "limits", limits)
        _put(found, "rooms", lambda: rooms(question))
        _put(found, "memory", memory)
    seen = late.within(DRIVER_S)
    if seen is None:
        found["troubles"].append("the GPUs' driver did not answer within %.0f s" % DRIVER_S)
    else:
        found.update(seen)
    return found


def _put(found: Dict[str, Any], name: str, look: Callable[[], Any]) -> None:
    try:
        found[name] = look()
    except Exception as error:
        found["troubles"].append("%s: %s: %s" % (name, type(error).__name__, str(error)[:200]))


class Late:
    """A look that may never come back, in a thread of its own. Invariant: it is begun once."""

    def __init__(self, look: Callable[[], Dict[str, Any]]) -> None:
        self._look = look
        self._found: Optional[Dict[str, Any]] = None
        self._thread = threading.Thread(target=self._run, name="vigil-driver", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._look()
        except Exception as error:
            self._found = {"troubles": ["gpus: %s: %s" % (type(error).__name__, str(error)[:200])]}

    def within(self, patience_s: float) -> Optional[Dict[str, Any]]:
        """Return what was seen, or None where it is not there in that time."""
        self._thread.join(patience_s)
        return self._found


def port(question: "Question") -> Optional[Dict[str, Any]]:
    """Return who listens where the server would, nobody where it is free; None where that is not to be seen from here."""
    if not question.port or not _binds_here(question):
        return None
    pids = answering(question.port, question.address)
    if pids is None:
        return {"port": question.port, "holders": []}
    holders = Holders()
    held = [holders.tell(pid) for pid in pids] or holders.of_port(question.port)
    return {"port": question.port, "holders": [gpus.aged(one) for one in held]}


def _binds_here(question: "Question") -> bool:
    """Say whether the command's port is one of this host: on it, or in a container that publishes it."""
    if not elsewhere(question.before):
        return scheduled(question.before, question.place.env) is None
    names = {os.path.basename(word) for word in question.before}
    return bool(names & _HOSTS_OWN) and any(word.partition("=")[0] in _PUBLISHES for word in question.before)


def limits() -> Dict[str, Any]:
    """Return the limits that the server will be born with, (soft, hard); None: no limit."""
    found = {}
    for name in ("NOFILE", "NPROC", "MEMLOCK"):
        pair = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
        found[name.lower()] = [None if one == resource.RLIM_INFINITY else one for one in pair]
    return found


def memory() -> Dict[str, Any]:
    """Return the host's memory in bytes: all, free, the lowest limit of our control groups, and what can be swapped out."""
    told = basics()
    swap = _SWAP.search(read_small("/proc/meminfo", 65536) or b"")
    known = {name: told["memory_%s_bytes" % name] for name in ("total", "free", "limit")}
    return {**known, "swap": int(swap.group(1)) << 10 if swap is not None else None}


def rooms(question: "Question") -> List[Dict[str, Any]]:
    """Return the room where the server writes: its folder, caches, /tmp, /dev/shm, our state folder with its log."""
    place = question.place
    kept: Tuple[str, ...] = (state_folder(),)
    return RoomLook().within(places_of(question.words, place.env, place.cwd, kept), ROOMS_S)
