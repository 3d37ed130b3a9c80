"""How much room is left where a server writes: the file systems of its model, its caches, its folder, and /dev/shm."""

import os
import threading
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

SHM = "/dev/shm"  # noqa: S108 - it is looked at
CACHES = ("HF_HUB_CACHE", "HF_HOME", "TRITON_CACHE_DIR", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")
KEPT_VARIABLES = (*CACHES, "XDG_CACHE_HOME", "HOME", "TMPDIR")
MOST_PLACES = 40
MOST_NAMED = 4
PLACE_CHARS = 300
_PATHS = ("/", "~/", "./", "../")


def places_of(words: Sequence[str], env: Mapping[str, str], cwd: str, others: Iterable[str] = ()) -> List[str]:
    """Return the folders that a command may fill: what its words name, its caches, its temporary and its working folder."""
    home = env.get("HOME") or os.path.expanduser("~")
    values = [word.partition("=")[2] if word.startswith("-") else word for word in words[1:]]
    named = [value for value in values if value.startswith(_PATHS)][:MOST_PLACES]
    caches = [env[name] for name in CACHES if env.get(name)]
    caches.append(env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"))
    found = [cwd, *named, *caches, env.get("TMPDIR") or "/tmp", SHM, *others]  # noqa: S108
    return [os.path.normpath(os.path.join(cwd, _at_home(one, home))) for one in found if one]


def _at_home(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def see_rooms(places: Iterable[str], found: Optional[List[Dict[str, Any]]] = None) -> List[Dict[str, Any]]:
    """Return the room of each file system below `places`, as `Room`s; one that nobody can write to is left out."""
    rooms = [] if found is None else found
    by_device: Dict[int, Dict[str, Any]] = {}
    for place in places:
        path = existing(place)
        try:
            device, room = os.stat(path).st_dev, os.statvfs(path)
        except (OSError, ValueError):
            continue
        if device in by_device:
            named = by_device[device]["places"]
            if place not in named and len(named) < MOST_NAMED:
                named.append(place[:PLACE_CHARS])
        elif room.f_blocks and not room.f_flag & os.ST_RDONLY:
            by_device[device] = _room(path, place, room)
            rooms.append(by_device[device])
    return rooms


def _room(path: str, place: str, room: os.statvfs_result) -> Dict[str, Any]:
    return {
        "path": mount_of(path)[:PLACE_CHARS],
        "places": [place[:PLACE_CHARS]],
        "total_bytes": room.f_blocks * room.f_frsize,
        "free_bytes": room.f_bavail * room.f_frsize,
        "free_files": room.f_favail if room.f_files else None,
    }


class RoomLook:
    """Looks in a thread of its own, one at a time: a file system whose server is gone may never answer."""

    def __init__(self) -> None:
        self._thread: Optional[threading.Thread] = None

    def within(self, places: Sequence[str], patience_s: float) -> List[Dict[str, Any]]:
        """Return what is seen in that time; nothing while an earlier look still hangs."""
        if self._thread is not None and self._thread.is_alive():
            return []
        found: List[Dict[str, Any]] = []
        self._thread = threading.Thread(target=see_rooms, args=[places, found], name="vigil-rooms", daemon=True)
        self._thread.start()
        self._thread.join(patience_s)
        return [{**room, "places": list(room["places"])} for room in list(found)]


def existing(path: str) -> str:
    """Return the nearest folder above a path that is there: a cache may not have been made yet."""
    while path not in {"", "/"} and not os.path.exists(path):
        path = os.path.dirname(path)
    return path or "/"


def mount_of(path: str) -> str:
    """Return where the file system that holds `path` begins."""
    path = os.path.realpath(path)
    while not os.path.ismount(path) and path != "/":
        path = os.path.dirname(path)
    return path
