"""What is done on the server's host when somebody asks: start, stop, list, show. One request, one answer, both JSON lines.

Standard library only, Python >= 3.9. The state folder of the user on this host is the truth about what runs here:
`$XDG_STATE_HOME/vigil/servers/NAME/starts/ID/{plan,life,exit,stop,verdict}.json`, with `NAME/current` pointing at the newest.
"""

import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sys
import time

from . import launcher, process, sockets

KEPT_STARTS = 20
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


class Refused(Exception):
    """A request that cannot be carried out; `kind` tells the tool which error of its own it is."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def state_folder():
    """Return the state folder of this user on this host."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "vigil")


def server_folder(name):
    """Return the folder of one name; refuse what is no name (it becomes a path)."""
    if not NAME.match(name):
        raise Refused(
            "usage",
            "%r is no name: letters, digits, '.', '_' and '-', 64 at most, beginning with a letter or digit" % name,
        )
    return os.path.join(state_folder(), "servers", name)


def read_json(path):
    """Return a JSON object from a file; {} where there is none, or it is blank or broken."""
    try:
        with open(path) as file:
            value = json.loads(file.read() or "{}")
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def is_alive(process, boot):
    """Say whether the process of {"pid", "start_ticks"} still runs in this boot."""
    pid = process.get("pid")
    if not pid or (boot and boot != launcher.boot_id()):
        return False
    return launcher.start_ticks(pid) == process.get("start_ticks") and not _is_zombie(pid)


def _is_zombie(pid):
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def show(name):
    """Return all that is known here of a name's newest start."""
    folder = server_folder(name)
    if not os.path.isdir(folder):
        known = ", ".join(sorted(names())) or "none"
        raise Refused("unknown", "no server named %s here (known: %s)" % (name, known))
    start = os.path.realpath(os.path.join(folder, "current"))
    life = read_json(os.path.join(start, "life.json"))
    boot = life.get("boot_id")
    return {
        "name": name,
        "folder": start,
        "plan": read_json(os.path.join(start, "plan.json")),
        "life": life,
        "exit": read_json(os.path.join(start, "exit.json")),
        "verdict": read_json(os.path.join(start, "verdict.json")),
        "alive": is_alive(life.get("main", {}), boot),
        "launcher_alive": is_alive(life.get("launcher", {}), boot),
        "rebooted": bool(boot and boot != launcher.boot_id()),
        "host": socket.gethostname(),
        "now": time.time(),
    }


def names():
    """Return the names known here."""
    try:
        return [name for name in os.listdir(os.path.join(state_folder(), "servers")) if NAME.match(name)]
    except OSError:
        return []


def list_servers():
    """Return `show` of every name, newest start first."""
    shown = [show(name) for name in names()]
    return {"servers": sorted(shown, key=lambda one: -one["life"].get("started_wall_s", 0))}


def launch(spec):
    """Start `spec["command"]` under a launcher; return its life once it runs, or refuse in one line."""
    servers = os.path.join(state_folder(), "servers")
    try:
        os.makedirs(servers, mode=0o700, exist_ok=True)
        with open(os.path.join(servers, ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _launch_locked(spec)
    except OSError as error:
        where = error.filename or state_folder()
        raise Refused("state", "state folder %s: %s; nothing was started" % (where, error.strerror)) from error


def _launch_locked(spec):
    name = _free_name(spec)
    _refuse_taken_port(spec.get("port"))
    start_id = "%s-%s" % (time.strftime("%Y%m%dT%H%M%S", time.gmtime()), os.urandom(2).hex())
    folder = os.path.join(server_folder(name), "starts", start_id)
    os.makedirs(folder, mode=0o700)
    try:
        launcher.write_whole(os.path.join(folder, "plan.json"), spec["plan"])
        launcher.reserve_exit(folder)
        log = _log_path(spec, folder)
        log_handle = _open_log(log)
        try:
            life = _daemonize(spec, folder, name, log, log_handle)
        finally:
            os.close(log_handle)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _point_current(name, start_id)
    _forget_old_starts(name)
    return {"name": name, "folder": folder, "life": life}


def _refuse_taken_port(number):
    """Refuse to start a server on a port that another program answers on: it would load for minutes and then die."""
    taken = listener(number) if number else {}
    if taken.get("listening"):
        who = (
            "pid %s (%s)" % (taken["pid"], taken.get("name") or "?")
            if taken.get("pid")
            else "a process that cannot be seen from here"
        )
        raise Refused("port", "port %d is already taken by %s" % (number, who))


def _log_path(spec, folder):
    base = spec.get("cwd") or os.getcwd()
    return (
        os.path.join(base, os.path.expanduser(spec["log"])) if spec.get("log") else os.path.join(folder, "server.log")
    )


def _open_log(log):
    try:
        return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Refused("usage", "cannot write the log %s: %s; nothing was started" % (log, error.strerror)) from error


def _free_name(spec):
    wanted = spec.get("name")
    if wanted:
        known = show(wanted) if os.path.isdir(server_folder(wanted)) else {}
        if known.get("alive") or known.get("launcher_alive"):
            raise Refused(
                "usage",
                "the name %s is in use by a running server (pid %s); choose another --name, or: vigil stop %s"
                % (wanted, known["life"]["main"]["pid"], wanted),
            )
        return wanted
    base = spec.get("made_name") or "server"
    for number in range(1, 1000):
        name = base if number == 1 else "%s-%d" % (base, number)
        if not os.path.isdir(server_folder(name)):
            return name
        known = show(name)
        if not (known["alive"] or known["launcher_alive"]):
            return name
    raise Refused("usage", "a thousand servers are named %s; give a --name" % base)


def _daemonize(spec, folder, name, log, log_handle):
    """Fork the launcher away from us; return its life once the command runs."""
    offset = os.fstat(log_handle).st_size
    reply_read, reply_write = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                os.close(reply_read)
                _run_launcher(spec, folder, name, {"log": log, "log_offset": offset}, log_handle, reply_write)
        finally:
            os._exit(0)
    os.close(reply_write)
    os.waitpid(first, 0)
    with os.fdopen(reply_read, "rb") as reply:
        answer = json.loads(reply.read() or b'{"error": "the launcher died at once"}')
    if "error" in answer:
        raise Refused("command", answer["error"])
    return answer


def _run_launcher(spec, folder, name, log, log_handle, reply_write):
    """Be the launcher: never returns."""
    try:
        _let_go(log_handle, reply_write)
        launcher.become_subreaper()
        life = launcher.Launcher(spec, folder)
        try:
            life.start(log_handle)
        except OSError as error:
            text = "cannot run %s: %s" % (spec["command"][0], error.strerror)
            os.write(reply_write, json.dumps({"error": text}).encode())
            os._exit(0)
        record = {
            "schema": 1,
            "name": name,
            "boot_id": launcher.boot_id(),
            "launcher": {"pid": os.getpid(), "start_ticks": launcher.start_ticks(os.getpid())},
            "main": {"pid": life.pid, "start_ticks": launcher.start_ticks(life.pid)},
            "started_wall_s": time.time(),
        }
        record.update(log)
        launcher.write_whole(os.path.join(folder, "life.json"), record)
        os.write(reply_write, json.dumps(record).encode())
        os.close(reply_write)
        os.close(log_handle)
        life.live()
    finally:
        os._exit(0)


def _let_go(*kept):
    """Hold no file, lock, terminal or connection of whoever started us."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the handle of the listing itself
                pass


def _point_current(name, start_id):
    link = os.path.join(server_folder(name), "current")
    partial = "%s.%d" % (link, os.getpid())
    os.symlink(os.path.join("starts", start_id), partial)
    os.replace(partial, link)


def _forget_old_starts(name):
    starts = os.path.join(server_folder(name), "starts")
    for old in sorted(os.listdir(starts))[:-KEPT_STARTS]:
        shutil.rmtree(os.path.join(starts, old), ignore_errors=True)


def stop(name, grace_s, by):
    """Ask a server to end, end it when the grace is over; return how it ended."""
    known = show(name)
    folder = known["folder"]
    if not known["alive"] and not known["launcher_alive"]:
        return dict(known, already=True)
    request = {"by": by, "grace_s": grace_s, "at_wall_s": time.time()}
    try:
        launcher.write_whole(os.path.join(folder, "stop.json"), request)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
    if known["launcher_alive"]:
        os.kill(known["life"]["launcher"]["pid"], signal.SIGTERM)
        _wait_until(lambda: not is_alive(known["life"]["launcher"], None), grace_s + launcher.LEFTOVER_GRACE_S + 10)
    else:
        _end_without_launcher(known["life"]["main"], grace_s)
    return dict(show(name), already=False)


def _end_without_launcher(main, grace_s):
    """Stop a server whose launcher was killed: its tree, by identity."""
    tree = [
        {"pid": pid, "start_ticks": launcher.start_ticks(pid)}
        for pid in [main["pid"], *launcher.descendants(main["pid"])]
    ]
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 10.0)):
        for process in tree if number == signal.SIGKILL else tree[:1]:
            if is_alive(process, None):
                os.kill(process["pid"], number)
        if _wait_until(lambda: not any(is_alive(process, None) for process in tree), patience_s):
            return


def _wait_until(condition, patience_s):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


def hold(name, grace_s, by):
    """Stop the server when our standard input ends: ties its life to whoever holds the other end."""
    while os.read(0, 4096):
        pass
    return stop(name, grace_s, by)


def note(name, folder, verdict):
    """Keep a verdict beside the start that it is about, where that start still exists."""
    if os.path.realpath(folder).startswith(os.path.realpath(server_folder(name)) + os.sep) and os.path.isdir(folder):
        launcher.write_whole(os.path.join(folder, "verdict.json"), verdict)
    return {}


def tail(name, limit_bytes):
    """Return the end of the log of a name's newest start, from where that start began."""
    life = show(name)["life"]
    with open(life["log"], "rb") as file:
        size = os.fstat(file.fileno()).st_size
        begin = life.get("log_offset", 0) if life.get("log_offset", 0) <= size else 0
        file.seek(max(begin, size - limit_bytes))
        return {"log": life["log"], "text": file.read(limit_bytes).decode("utf-8", "replace")}


def listener(port):
    """Say whether something listens on the port here, and which process, as far as that can be seen."""
    found = sockets.read_listeners(port) or []
    if not found:
        return {"listening": False}
    held = sockets.find_holders(frozenset(one.inode for one in found), process.all_pids()).by_inode
    pid = min((pid for pids in held.values() for pid in pids), default=None)
    stat = process.read_stat(pid) if pid else None
    return {"listening": True, "pid": pid, "name": stat.comm if stat else ""}


VERBS = {
    "launch": launch,
    "stop": stop,
    "hold": hold,
    "show": show,
    "list": list_servers,
    "note": note,
    "tail": tail,
    "listener": listener,
}


def answer(request):
    """Carry one request out; return {"ok": value} or {"refused": kind, "text": line}."""
    try:
        return {"ok": VERBS[request["verb"]](**request.get("args", {}))}
    except Refused as error:
        return {"refused": error.kind, "text": str(error)}
    except OSError as error:
        return {"refused": "state", "text": "%s: %s" % (error.filename or request.get("verb"), error.strerror)}


def main(request):
    """Answer one request on standard output; `request` came with the program text."""
    reply = json.dumps(answer(request)) + "\n"
    sys.stdout.write(reply)
    sys.stdout.flush()
