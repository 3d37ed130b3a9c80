"""Stop a server on its host: through its launcher, or by identity where that one is gone or does not answer."""

import os
import signal
import time
from typing import Any, Dict

from . import family, kin, parent, state

LAUNCHER_PATIENCE_S = 10.0


def stop(name: str, grace_s: float, by: str) -> Dict[str, Any]:
    """Ask a server to end, end all of it when the grace is over; return how it ended."""
    return _stop_start(name, _settled(name), grace_s, by)


def hold(name: str, grace_s: float, by: str) -> Dict[str, Any]:
    """Stop the server when our standard input ends: ties its life to whoever holds the other end.

    A later start of the same name is somebody else's and goes on.
    """
    known = state.show(name)
    os.write(1, b"\nholding\n")
    while os.read(0, 4096):
        pass
    return _stop_start(name, state.show(name, known["folder"]), grace_s, by)


def _settled(name: str) -> Dict[str, Any]:
    """Return what is known of a name once no start of it is under way."""
    state.server_folder(name)
    try:
        with state.lock():
            return state.show(name)
    except (OSError, state.Refused):  # the folder cannot be written, or a start hangs: what is known must do
        return state.show(name)


def _stop_start(name: str, known: Dict[str, Any], grace_s: float, by: str) -> Dict[str, Any]:
    life, folder = known["life"], known["folder"]
    ours = bool(life) and not known["rebooted"] and known["elsewhere"] is None
    if not ours or not (known["launcher_alive"] or kin.find(life)):
        return dict(known, already=True)
    try:
        parent.fill(
            os.fsencode(os.path.join(folder, "stop")), ("%.3f\n%s\n" % (grace_s, by)).encode("utf-8", "replace")
        )
    except OSError:  # the signal alone ends it, too
        pass
    began_s = time.monotonic()
    _ask_launcher(life["launcher"], grace_s)
    left = kin.end(life, max(0.0, grace_s - (time.monotonic() - began_s)))
    if not state.read_json(os.path.join(folder, "exit.json")):
        _note_end(folder, by, max(0, left - 1))
    return dict(state.show(name, folder), already=False)


def _ask_launcher(identity: Dict[str, int], grace_s: float) -> None:
    """Have the launcher end the tree; one that is stuck is ended itself."""
    pid, ticks = identity["pid"], identity["start_ticks"]
    try:
        if not family.send(pid, ticks, signal.SIGTERM):
            return
        family.send(pid, ticks, signal.SIGCONT)
    except PermissionError:
        raise state.Refused("state", "pid %d belongs to another user: only they can stop it" % pid) from None
    patience_s = grace_s + parent.LEFTOVER_GRACE_S + LAUNCHER_PATIENCE_S
    if not kin.wait_until(lambda: not state.is_running(identity), patience_s):
        family.send(pid, ticks, signal.SIGKILL)


def _note_end(folder: str, by: str, left: int) -> None:
    """Say that it was stopped where no launcher could: its exit status is known to nobody."""
    end = {"code": None, "signal": None, "asked_by": by, "left": left, "oom_killed": False, "at_wall_s": time.time()}
    try:
        state.write_json(os.path.join(folder, "exit.json"), end)
    except OSError:
        pass
