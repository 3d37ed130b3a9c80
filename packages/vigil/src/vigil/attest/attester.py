"""The attester: asked over a socket, it says what this Python process really runs. Written as `sitecustomize.py` beside a start.

It may not be felt. At the start of an interpreter it wraps one function of the import system, which notes size and time of each
source file as the loader itself saw them; nothing else. Only a process that imports a package that matters gets a thread, which
sleeps in accept(2) without the interpreter's lock; a fork gets its own. Any error is silence. It works in Python 3.9 and
newer, needs the standard library only, and imports at the start nothing that is not there already. What it tells is found by
the files beside it (`telling`, `finding`), which only the thread loads.

`VIGIL_ATTEST` names the folder for the sockets, `VIGIL_ATTEST_OF` the packages at whose import the thread begins ("*": any file).
"""

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds of every interpreter's start
    from typing import Any, Callable, Dict, Optional, Tuple

REQUEST_BYTES = 256 << 10
TALK_S = 2.0
ENCODED_AT_ONCE = 200
MOST_DOORS = 8
LONGEST_SOCKET_PATH = 107
ROOT_UID = 0
FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
"""Signals that a thread causes itself: their handlers must see them."""

loaded: "Dict[str, Tuple[float, int]]" = {}
"""Source files, with time and size as the loader saw them when it read them."""
_own = ""
_folder = ""
_marks: "Tuple[str, ...]" = ()
_awake = 0  # the pid whose thread runs
_door: "Tuple[int, int]" = (-1, 0)  # descriptor and inode of the socket
_start_thread = (
    _thread.start_new_thread
)  # as it is now: gevent puts a greenlet in its place, which would hold up all others


# --- at the start


def begin(own: str, folder: str, names: str) -> None:
    """Note what the loader reads from now on, and wake when it reads a file of a package that matters."""
    global _own, _folder, _marks
    _own, _folder = own, folder
    _marks = tuple("" if name == "*" else "/%s/" % name for name in names.split(",") if name)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    original = loader.path_stats

    def path_stats(self: "Any", path: str) -> "Any":
        told = original(self, path)
        try:
            loaded[path] = (told["mtime"], told["size"])
            if not _awake:
                for mark in _marks:
                    if mark in path and mark in "/" + path.rpartition("-packages/")[2]:
                        _wake()
                        break
        except Exception:
            pass
        return told

    loader.path_stats = path_stats
    os.register_at_fork(after_in_child=_forked)


def run_hidden(own: str) -> None:
    """Run the `sitecustomize` that this one hides, exactly as if this one were not there: its errors are its own."""
    sys.path[:] = [one for one in sys.path if one != own]
    external, frozen = sys.modules["_frozen_importlib_external"], sys.modules["_frozen_importlib"]
    spec = external.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = frozen.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def in_main_interpreter() -> bool:
    """Say whether this is no subinterpreter: one that ends while a thread of ours sleeps in it would abort the process.

    A handler may be set in the main interpreter alone, and of SIGKILL not even there: nothing is changed by asking.
    """
    _signal: "Any" = __import__("_signal")
    try:
        _signal.signal(_signal.SIGKILL, _signal.SIG_DFL)
    except OSError:
        return True
    except ValueError:
        pass
    return False


def _wake() -> None:
    """Begin to answer, once in each process."""
    global _awake
    _awake = os.getpid()
    _start_thread(_serve, ())


def _forked() -> None:
    """Begin anew in a forked child, which has none of our threads: it is a rank of its own."""
    global _awake, _door
    try:
        awake, _awake = _awake, 0
        (number, inode), _door = _door, (-1, 0)
        if number >= 0 and _is(number, inode):
            os.close(number)
        if awake:
            _wake()
    except Exception:
        pass


# --- the socket


def _serve() -> None:
    """Answer who asks; where the program closed all of its files, and ours with them, at a new socket."""
    try:
        _leave_signals_alone()
        import _socket

        tell = _load_teller()
        for _ in range(MOST_DOORS):
            door = _open_door(_socket)
            if door is None:
                return
            try:
                _attend(_socket, door, tell)
            finally:
                door.detach()  # its descriptor may be another's by now, and must not be closed with the object
            if _awake != os.getpid():
                return
    except BaseException:  # whatever it is: nobody in this process may hear of it
        pass


def _leave_signals_alone() -> None:
    """Take no signal that is meant for the process: one that waits for it by `sigwait` must get it."""
    _signal: "Any" = __import__("_signal")
    faults = {getattr(_signal, name) for name in FAULTS if hasattr(_signal, name)}
    _signal.pthread_sigmask(_signal.SIG_BLOCK, set(_signal.valid_signals()) - faults)


def _load_teller() -> "Callable[..., Dict[str, Any]]":
    """Load the files beside this one, where nobody else's import finds them."""
    external = sys.modules["_frozen_importlib_external"]
    found: "Dict[str, Any]" = {}
    for name in ("finding", "telling"):
        path = os.path.join(_own, name + ".py")
        found[name] = type(sys)("vigil_" + name)
        found[name].__dict__.update(found)
        external.SourceFileLoader("vigil_" + name, path).exec_module(found[name])
        loaded.pop(path, None)
    tell: "Callable[..., Dict[str, Any]]" = found["telling"].tell
    return tell


def _open_door(_socket: "Any") -> "Optional[Any]":
    """Listen in the start's folder. A path in /proc leads there: the kernel takes no name longer than 107 bytes."""
    global _door
    handle = os.open(_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid not in (os.geteuid(), ROOT_UID):
            return None
        name = "%d.sock" % os.getpid()
        path = os.path.join(_folder, name)
        if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
            path = "/proc/self/fd/%d/%s" % (handle, name)
        try:
            os.unlink(name, dir_fd=handle)  # of a program that this process was before
        except OSError:
            pass
        door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        door.settimeout(None)  # a program may have given all of its sockets one
        door.bind(path)
        os.chmod(name, 0o600, dir_fd=handle)
        door.listen(64)
    finally:
        os.close(handle)
    _door = (door.fileno(), os.fstat(door.fileno()).st_ino)
    return door


def _attend(_socket: "Any", door: "Any", tell: "Callable[..., Dict[str, Any]]") -> None:
    while _awake == os.getpid() and _is(*_door):
        number, _ = door._accept()
        inode = os.fstat(number).st_ino
        talk = _socket.socket(fileno=number)
        try:
            _answer(_socket, talk, inode, tell)
        except Exception:  # of this asker only
            pass
        finally:
            if _is(number, inode):
                talk.close()
            else:
                talk.detach()


def _is(number: int, inode: int) -> bool:
    """Say whether a descriptor still is our socket: a program may close all of its files, and open others."""
    try:
        return os.fstat(number).st_ino == inode
    except OSError:
        return False


def _answer(_socket: "Any", talk: "Any", inode: int, tell: "Callable[..., Dict[str, Any]]") -> None:
    """Answer one request: a line of JSON, and a line back. Only the same user, or root, is heard."""
    import time

    asker = talk.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    if int.from_bytes(asker[4:8], sys.byteorder) not in (ROOT_UID, os.geteuid(), os.getuid()):
        return
    until_s = time.monotonic() + TALK_S
    data = b""
    while not data.endswith(b"\n"):
        talk.settimeout(max(0.001, until_s - time.monotonic()))
        part = talk.recv(65536)
        data += part
        if not part or len(data) > REQUEST_BYTES or time.monotonic() > until_s:
            return
    json = _json()
    reply = _line(json, tell(json.loads(data), loaded))
    talk.settimeout(TALK_S)
    if _is(talk.fileno(), inode):
        talk.sendall(reply)


def _json() -> "Any":
    """Return the standard library's module; a program's own file of that name is not run for us, nor hidden from it."""
    if "json" not in sys.modules:
        spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("json", sys.path)
        if not str(spec.origin).startswith(os.path.dirname(str(os.__file__)) + "/"):
            raise ImportError("another json")
    import json

    return json


def _line(json: "Any", told: "Dict[str, Any]") -> bytes:
    """Return a line of JSON, made piece by piece: no call may hold the interpreter for long."""
    modules = told.pop("modules")
    parts = [
        json.dumps(modules[first : first + ENCODED_AT_ONCE])[1:-1] for first in range(0, len(modules), ENCODED_AT_ONCE)
    ]
    line: str = '{"modules": [%s], %s\n' % (", ".join(parts), json.dumps(told)[1:])
    return line.encode("ascii")


def _main() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    try:
        folder = os.environ.get("VIGIL_ATTEST")
        if folder and in_main_interpreter():
            begin(own, folder, os.environ.get("VIGIL_ATTEST_OF", ""))
    except Exception:
        pass
    run_hidden(own)


if __name__ == "sitecustomize":
    _main()
