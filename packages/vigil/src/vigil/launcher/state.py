"""The state folder of this user on this host: the truth about what runs here.

`$XDG_STATE_HOME/vigil/servers/NAME/starts/ID/{plan,life,exit,verdict,ready,snapshot}.json`, with `NAME/current` pointing at the
newest.
"""

import fcntl
import json
import os
import re
import socket
import stat
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional

from ..observer.life import read_boot_id, servers_folder
from ..observer.process import TICKS_PER_S, is_alive, read_bytes
from . import family

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
FILE_BYTES = 8 << 20
SNAPSHOT = "snapshot.json"  # see `snapshot`; written beside a start, after it runs
LOCK_PATIENCE_S = 30.0
LARGEST_PID = 1 << 22
SHOWN_NAMES = 20
SHOWN_CHARS = 80


class Refused(Exception):  # noqa: N818 - it is an answer, not an error
    """A request that cannot be carried out; `kind` tells the tool which error of its own it is."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def server_folder(name: Any) -> str:
    """Return the folder of one name; refuse what is no name (it becomes a path)."""
    if not isinstance(name, str) or not NAME.match(name):
        shown = repr(name)[:SHOWN_CHARS]
        raise Refused(
            "usage",
            "%s is no name: letters, digits, '.', '_' and '-', 64 at most, beginning with a letter or digit" % shown,
        )
    return os.path.join(servers_folder(), name)


def names() -> List[str]:
    """Return the names known here."""
    try:
        found = os.listdir(servers_folder())
    except OSError:
        return []
    return [name for name in found if NAME.match(name) and current_start(name)]


def current_start(name: str) -> Optional[str]:
    """Return the folder of a name's newest start, or None where there is none."""
    folder = os.path.realpath(os.path.join(server_folder(name), "current"))
    return folder if os.path.isdir(folder) else None


def read_json(path: str) -> Dict[str, Any]:
    """Return a JSON object from a file; {} where there is none, or it is blank or broken."""
    try:
        value = json.loads(read_bytes(path, FILE_BYTES) or b"")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def trouble_with(path: str) -> Optional[str]:
    """Return why `read_json` finds nothing in a file that is there, None where it does or there is no file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "it is no file"  # opening a pipe would hold us up
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            return "it is larger than %d MiB" % (FILE_BYTES >> 20)
        return None if isinstance(json.loads(data), dict) else "it holds no JSON object"
    except FileNotFoundError:
        return None
    except OSError as error:
        return error.strerror or type(error).__name__
    except RecursionError:
        return "it is nested too deeply"
    except ValueError as error:  # no JSON, or no UTF-8
        return "it is no JSON: %s" % error


def write_json(path: str, value: Any) -> None:
    """Write JSON so that a reader never sees half of it, and nothing is left where the disk is full."""
    partial = "%s.%d.part" % (path, os.getpid())
    try:
        with open(partial, "w", encoding="ascii", opener=_private) as file:
            json.dump(value, file)
        os.replace(partial, path)
    except BaseException:
        discard(partial)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def discard(path: str) -> None:
    """Remove a file, where it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass


@contextmanager
def lock() -> Iterator[None]:
    """Hold the lock under which names are given away; refuse where another holds it too long."""
    with open(os.path.join(servers_folder(), ".lock"), "a") as file:
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused("state", "another start holds %s; nothing was started" % file.name) from None
                time.sleep(0.01)
        yield


def show(name: str, start: Optional[str] = None) -> Dict[str, Any]:
    """Return all that is known here of a name's newest start, or of the one in the folder `start`."""
    start = start or current_start(name)
    if start is None:
        known = sorted(names())
        listed = ", ".join(known[:SHOWN_NAMES]) + (", ..." if len(known) > SHOWN_NAMES else "")
        raise Refused("unknown", "no server named %s here (known: %s)" % (name, listed or "none"))
    life = sound_life(read_json(os.path.join(start, "life.json")))
    here = socket.gethostname()
    other_boot = bool(life) and life["boot_id"] != read_boot_id()
    elsewhere = life["host"] if other_boot and life["host"] not in {"", here} else None
    alive = bool(life) and not other_boot and is_running(life["main"])
    return {
        "name": name,
        "folder": start,
        "plan": read_json(os.path.join(start, "plan.json")),
        "life": life,
        "exit": read_json(os.path.join(start, "exit.json")),
        "verdict": read_json(os.path.join(start, "verdict.json")),
        "verdict_age_s": _file_age_s(os.path.join(start, "verdict.json")),
        "alive": alive,
        "launcher_alive": bool(life) and not other_boot and is_running(life["launcher"]),
        "rebooted": other_boot and elsewhere is None,
        "elsewhere": elsewhere,
        "up_s": _age_s(life["main"]["start_ticks"]) if alive else None,
        "host": here,
        "now": time.time(),
    }


def _file_age_s(path: str) -> Optional[float]:
    """Return how long ago a file was written, for showing only: the wall clock may have been set since."""
    try:
        return max(0.0, time.time() - os.stat(path).st_mtime)
    except OSError:
        return None


def _age_s(start_ticks: int) -> float:
    """Return the age of a process by the clock that nobody sets."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / TICKS_PER_S)


def sound_life(life: Dict[str, Any]) -> Dict[str, Any]:
    """Return a life whose fields have their types, or {} where it cannot be trusted."""
    for who in ("main", "launcher"):
        identity = life.get(who)
        if not isinstance(identity, dict):
            return {}
        pid, ticks = identity.get("pid"), identity.get("start_ticks")
        if not isinstance(pid, int) or not isinstance(ticks, int) or not 1 < pid <= LARGEST_PID:
            return {}
    if not isinstance(life.get("boot_id"), str) or not isinstance(life.get("log"), str):
        return {}
    fixed = dict(life)
    for field, kind, default in (
        ("log_offset", int, 0),
        ("started_wall_s", (int, float), 0.0),
        ("mark", str, ""),
        ("host", str, ""),
        ("name", str, ""),
    ):
        if not isinstance(fixed.get(field), kind):
            fixed[field] = default
    return fixed


def is_running(identity: Dict[str, int]) -> bool:
    """Say whether the process of {"pid", "start_ticks"} runs, and is no zombie."""
    pid, ticks = identity["pid"], identity["start_ticks"]
    return is_alive(pid, ticks) or family.table().get(pid, (0, 0, -1, b""))[2] == ticks


def list_servers() -> Dict[str, Any]:
    """Return `show` of every name, newest start first."""
    shown = []
    for name in names():
        try:
            shown.append(show(name))
        except Refused:  # removed meanwhile
            continue
    return {"servers": sorted(shown, key=lambda one: -one["life"].get("started_wall_s", 0.0))}
