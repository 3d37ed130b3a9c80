"""Start a command under a launcher, and write down that it runs; or refuse in one line and leave nothing."""

import os
import shutil
import time
from contextlib import ExitStack
from typing import Any, Dict, List, Optional

from ..observer.life import read_boot_id
from . import kin, spawn, state
from .name import free_name
from .output import open_log
from .request import Request, read_request
from .taken import listener

KEPT_STARTS = 20
DIGITS = 9  # more is no number of ours


def launch(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Start `spec["command"]` under a launcher; return its life once it runs, or refuse in one line."""
    request = read_request(spec)
    try:
        os.makedirs(state.servers_folder(), mode=0o700, exist_ok=True)
        with state.lock():
            return _launch_locked(request)
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else state.state_folder()
        raise state.Refused("state", "state folder %s: %s; nothing was started" % (where, error.strerror)) from error


def _launch_locked(request: Request) -> Dict[str, Any]:
    name = free_name(request)
    _refuse_taken_port(request.port, request.host)
    with ExitStack() as undo:
        folder = _make_start(name, undo)
        state.write_json(os.path.join(folder, "plan.json"), request.plan)
        for reserved in ("exit.json", "stop"):
            _reserve(os.path.join(folder, reserved))
        log = request.log or os.path.join(folder, "server.log")
        with os.fdopen(open_log(log, undo), "ab", 0) as output:
            life = _start(request, folder, log, output.fileno(), undo)
        undo.pop_all()
    _forget_old_starts(name, folder)
    return {"name": name, "folder": folder, "life": life}


def _start(request: Request, folder: str, log: str, handle: int, undo: ExitStack) -> Dict[str, Any]:
    name = os.path.basename(os.path.dirname(os.path.dirname(folder)))
    mark = os.urandom(8).hex()
    env = {**os.environb, **request.env, kin.MARK.encode(): mark.encode()}
    env.setdefault(b"PYTHONUNBUFFERED", b"1")  # the log must show what a Python server does, when it does it
    offset = os.fstat(handle).st_size
    with spawn.Launcher(request, env, folder, handle) as started:
        life = {
            "schema": 1,
            "name": name,
            "boot_id": read_boot_id(),
            "host": os.uname().nodename,
            "launcher": started.launcher,
            "main": started.main,
            "mark": mark,
            "started_wall_s": time.time(),
            "log": log,
            "log_offset": offset,
        }
        # Before the command runs: whatever happens next, what was started is known.
        state.write_json(os.path.join(folder, "life.json"), life)
        _point_current(name, folder, undo)
        started.go()
    return life


def _refuse_taken_port(number: Optional[int], host: Optional[str]) -> None:
    """Refuse to start a server on a port that another program answers on: it would load for minutes and then die."""
    taken = listener(number, host) if number else {}
    if taken.get("listening"):
        who = (
            "pid %s (%s)" % (taken["pid"], taken.get("name") or "?")
            if taken.get("pid")
            else "a process that cannot be seen from here"
        )
        raise state.Refused("port", "port %d is already taken by %s" % (number or 0, who))


def _make_start(name: str, undo: ExitStack) -> str:
    """Make the folder of one more start. It is numbered: the host's clock may jump, the order of starts may not."""
    owner = state.server_folder(name)
    starts = os.path.join(owner, "starts")
    undo.callback(_remove_empty, owner, starts)
    os.makedirs(starts, mode=0o700, exist_ok=True)
    number = max((_number(old) for old in os.listdir(starts)), default=0) + 1
    folder = os.path.join(starts, "%06d-%s" % (number, time.strftime("%Y%m%dT%H%M%S", time.gmtime())))
    os.mkdir(folder, mode=0o700)
    undo.callback(shutil.rmtree, folder, ignore_errors=True)
    return os.path.realpath(folder)


def _number(start: str) -> int:
    head = start.partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) <= DIGITS else 0


def _remove_empty(owner: str, starts: str) -> None:
    for folder in (starts, owner):
        try:
            os.rmdir(folder)
        except OSError:  # earlier starts lie there
            return


def _reserve(path: str) -> None:
    """Write blanks that the disk really holds; blank means: not yet."""
    with open(path, "wb") as file:
        file.write(b" " * spawn.RESERVED_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _point_current(name: str, folder: str, undo: ExitStack) -> None:
    """Let `current` name the new start; where that start fails, the one before."""
    link = os.path.join(state.server_folder(name), "current")
    try:
        before = os.readlink(link)
    except OSError:
        undo.callback(state.discard, link)
    else:
        undo.callback(_link, before, link)
    _link(os.path.join("starts", os.path.basename(folder)), link)


def _link(target: str, link: str) -> None:
    partial = "%s.%d" % (link, os.getpid())
    state.discard(partial)
    try:
        os.symlink(target, partial)
        os.replace(partial, link)
    except BaseException:
        state.discard(partial)
        raise


def _forget_old_starts(name: str, newest: str) -> None:
    starts = os.path.join(state.server_folder(name), "starts")
    for old in _oldest(starts):
        if old != os.path.basename(newest):
            shutil.rmtree(os.path.join(starts, old), ignore_errors=True)


def _oldest(starts: str) -> List[str]:
    return sorted(os.listdir(starts), key=_number)[:-KEPT_STARTS]
