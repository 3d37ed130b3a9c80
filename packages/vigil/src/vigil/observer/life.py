"""Read what our launcher wrote down about a start."""

import json
import os
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .process import read_bytes

ATTESTERS = "attest"
"""The folder beside a start in which its attesters' sockets lie, and that of the attester itself in the state folder."""


class Life(NamedTuple):
    """A start that our launcher made. Identities are (pid, start ticks); pid 0 where the file does not say."""

    launcher: Tuple[int, int]
    main: Tuple[int, int]
    boot_id: str
    log: str
    log_offset: int
    attester: bool


class Exit(NamedTuple):
    """How the start ended, as its parent saw it. `over`: nothing is left of its tree, so that no more will be written."""

    code: Optional[int]
    signal: Optional[int]
    asked_by: Optional[str]
    left: int
    oom_killed: bool
    over: bool


def state_folder() -> str:
    """Return vigil's state folder of this user on this host."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.abspath(os.path.join(base, "vigil"))


def servers_folder() -> str:
    """Return the folder in which one folder lies for each server."""
    return os.path.join(state_folder(), "servers")


def read_boot_id() -> str:
    """Return the name of this boot."""
    return (read_bytes("/proc/sys/kernel/random/boot_id", 64) or b"").decode("ascii", "replace").strip()


def read_life(folder: str) -> Optional[Life]:
    """Return the life, or None while the launcher has not written it yet."""
    data = _read_object(os.path.join(folder, "life.json"))
    if data is None:
        return None
    return Life(
        launcher=_identity(data.get("launcher")),
        main=_identity(data.get("main")),
        boot_id=_text(data.get("boot_id")) or "",
        log=_text(data.get("log")) or "",
        log_offset=_number(data.get("log_offset")) or 0,
        attester=data.get("attester") is True,
    )


def read_command(folder: str) -> Tuple[str, ...]:
    """Return the command of the life, as it is kept: without its secrets; empty where that cannot be read."""
    words = (_read_object(os.path.join(folder, "plan.json")) or {}).get("command")
    return tuple(word for word in words if isinstance(word, str)) if isinstance(words, list) else ()


def read_exit(folder: str) -> Optional[Exit]:
    """Return the end of the life, or None while there is none."""
    data = _read_object(os.path.join(folder, "exit.json"))
    if data is None:
        return None
    return Exit(
        code=_number(data.get("code")),
        signal=_number(data.get("signal")),
        asked_by=_text(data.get("asked_by")),
        left=_number(data.get("left")) or 0,
        oom_killed=data.get("oom_killed") is True,
        over=data.get("over") is not False,
    )


def read_stop(folder: str) -> Optional[str]:
    """Return who asked for the end of the life, or None where nobody did. The launcher's file holds the grace, then a name."""
    grace, newline, by = (read_bytes(os.path.join(folder, "stop"), 4096) or b"").partition(b"\n")
    if not newline or not grace.strip():
        return None  # reserved at the start, and filled only to ask
    return by.decode("utf-8", "replace").strip() or "somebody"


def _read_object(path: str) -> Optional[Dict[str, Any]]:
    text = read_bytes(path, 1 << 20)
    try:
        data = json.loads(text or b"")
    except ValueError:  # not there, or half written
        return None
    return data if isinstance(data, dict) else None


def _identity(value: Any) -> Tuple[int, int]:
    if not isinstance(value, dict):
        return (0, 0)
    return (_number(value.get("pid")) or 0, _number(value.get("start_ticks")) or 0)


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None
