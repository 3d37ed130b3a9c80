"""Start a command under a launcher, and write down that it runs; or refuse in one line and leave nothing."""

import os
import shutil
import time
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Dict, Optional, Tuple

from ..observer.holders import Holders
from ..observer.life import read_boot_id, servers_folder, state_folder
from . import kin, spawn, starts, state
from .aside import aside
from .attester import SOCKETS, with_attester
from .name import free_name
from .output import open_log
from .plugin import with_places, with_plugin
from .request import Request, read_request
from .taken import listener

SHOWN_CHARS = 100


def launch(spec: Dict[str, Any]) -> Dict[str, Any]:
    """Start `spec["command"]` under a launcher; return its life once it runs, or refuse in one line."""
    request = read_request(spec)
    try:
        os.makedirs(servers_folder(), mode=0o700, exist_ok=True)
        with state.lock():
            started, env = _launch_locked(request)
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else state_folder()
        raise state.Refused("state", "state folder %s: %s; nothing was started" % (where, error.strerror)) from error
    if request.keep is not None:
        aside(lambda: _keep_snapshot(request, started, env))
    return started


def _keep_snapshot(request: Request, started: Dict[str, Any], env: Dict[bytes, bytes]) -> None:
    """Keep what this start found, beside it. Called in a process of its own, which alone loads what that takes."""
    snapshot = import_module("..survey.snapshot", __package__)
    snapshot.take(snapshot.order_of(started, request.command, env, request.cwd, request.keep or {}))


def _launch_locked(request: Request) -> Tuple[Dict[str, Any], Dict[bytes, bytes]]:
    name = free_name(request)
    _refuse_taken_port(request.port, request.host)
    with ExitStack() as undo:
        folder = _make_start(name, undo)
        state.write_json(os.path.join(folder, "plan.json"), request.plan)
        for reserved in ("exit.json", "stop"):
            _reserve(os.path.join(folder, reserved))
        log = request.log or os.path.join(folder, "server.log")
        with os.fdopen(open_log(log, undo), "ab", 0) as output:
            env = {**os.environb, **request.env}
            env.setdefault(b"PYTHONUNBUFFERED", b"1")  # the log must show what a Python server does, when it does it
            life = _start(request, env, folder, log, output.fileno(), undo)
        undo.pop_all()
    starts.forget_old(name)
    return {"name": name, "folder": folder, "life": life, "good": starts.has_good(name, folder)}, env


def _start(  # noqa: PLR0913, PLR0917 - what a start is made of
    request: Request, env: Dict[bytes, bytes], folder: str, log: str, handle: int, undo: ExitStack
) -> Dict[str, Any]:
    name = os.path.basename(os.path.dirname(os.path.dirname(folder)))
    mark = os.urandom(8).hex()
    env = with_attester({**env, kin.MARK.encode(): mark.encode()}, request.attester, folder)
    env = with_plugin(env, request.plugin, folder)
    if request.plugin is not None:
        request = request._replace(command=with_places(request.command, folder))
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
            "attester": request.attester is not None and SOCKETS in env,
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
        raise state.Refused("port", "port %d is already taken by %s" % (number or 0, _who(taken.get("pid"))))


def _who(pid: Optional[int]) -> str:
    if not pid:
        return "a process that cannot be seen from here"
    held = Holders().tell(pid)
    command = " ".join(held["argv"]) or held["name"] or "?"
    command = command if len(command) <= SHOWN_CHARS else command[: SHOWN_CHARS - 3] + "..."
    started = ", which vigil started as %s" % held["server"] if held["server"] else ""
    return "pid %d (%s)%s" % (pid, command, started)


def _make_start(name: str, undo: ExitStack) -> str:
    """Make the folder of one more start. It is numbered: the host's clock may jump, the order of starts may not."""
    owner = state.server_folder(name)
    base = os.path.join(owner, "starts")
    undo.callback(_remove_empty, owner, base)
    os.makedirs(base, mode=0o700, exist_ok=True)
    number = max((starts.number_of(old) for old in os.listdir(base)), default=0) + 1
    folder = os.path.join(base, "%06d-%s" % (number, time.strftime("%Y%m%dT%H%M%S", time.gmtime())))
    os.mkdir(folder, mode=0o700)
    undo.callback(shutil.rmtree, folder, ignore_errors=True)
    return os.path.realpath(folder)


def _remove_empty(owner: str, base: str) -> None:
    for folder in (base, owner):
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
