"""Execute the launcher in an interpreter of its own, away from us, and start the command through it.

The launcher reports who it and the command are before the command runs; it starts the command when told to, and starts nothing
where we die before.
"""

import errno
import marshal
import os
import sys
from types import CodeType, ModuleType
from typing import Any, Dict, List, NoReturn, Optional

from . import family, kin, oomkill, parent
from .request import Request
from .state import Refused

RESERVED_BYTES = parent.RESERVED_BYTES
PR_SET_CHILD_SUBREAPER = 36
STANDARD = (0, 1, 2)
IDENTITY_WORDS = 4
_BOOT = "import marshal;f=open(%d,'rb',closefd=False);exec(marshal.load(f))"
_UNPACK = """
import sys
new = type(sys)
package = sys.modules["vigil_launcher"] = new("vigil_launcher")
package.__path__ = []
for name, code in marshal.load(f):
    module = sys.modules["vigil_launcher." + name] = new("vigil_launcher." + name)
    module.__package__ = "vigil_launcher"
    exec(code, module.__dict__)
module.main(marshal.load(f))
"""


class Launcher:
    """A launcher that holds the command back until `go`; leaving the block without it starts nothing."""

    def __init__(self, request: Request, env: Dict[bytes, bytes], folder: str, log: int) -> None:
        self._request = request
        self.launcher: Dict[str, int] = {}
        self.main: Dict[str, int] = {}
        orders_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        order = {
            "folder": os.fsencode(folder),
            "programs": _programs(request.command[0], env.get(b"PATH", os.defpath.encode())),
            "command": request.command,
            "env": env,
            "cwd": os.fsencode(request.cwd),
            "go": orders_read,
            "reply": reply_write,
            "log": log,
        }
        try:
            _fork([orders_read, reply_write, log])
            os.close(orders_read)
            os.close(reply_write)
            _write_all(self._orders, _program() + marshal.dumps(order))
            self._read_identities()
        except OSError as error:
            self.__exit__()
            raise Refused(
                "command", "the launcher could not be started: %s; nothing was started" % error.strerror
            ) from error

    def __enter__(self) -> "Launcher":  # noqa: PYI034 - Self is not in 3.9
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._orders)
        os.close(self._reply)

    def _read_identities(self) -> None:
        words = _read_line(self._reply).split()
        if len(words) != IDENTITY_WORDS:
            raise OSError(errno.ECHILD, "it died at once")
        self.launcher = {"pid": int(words[0]), "start_ticks": int(words[1])}
        self.main = {"pid": int(words[2]), "start_ticks": int(words[3])}

    def go(self) -> None:
        """Start the command; refuse where it cannot be executed."""
        os.write(self._orders, b"g")
        failed = b"".join(iter(lambda: os.read(self._reply, 4096), b""))
        if failed:
            stage, _, number = failed.partition(b" ")
            raise Refused("command", why_not(stage, int(number), self._request))


def why_not(stage: bytes, number: int, request: Request) -> str:
    """Say in one line why a command cannot be run."""
    command = os.fsdecode(request.command[0])
    if stage == b"cwd":
        return "cannot run %s in %s: %s" % (command, request.cwd, os.strerror(number))
    path = os.path.join(request.cwd, command) if "/" in command else None
    reason = os.strerror(number)
    if number == errno.ENOENT:
        reason = (
            "not found on the PATH"
            if path is None
            else "the interpreter that its first line names does not exist"
            if os.path.exists(path)
            else reason
        )
    elif number == errno.ENOEXEC:
        reason = "it has no '#!' line and is no program for this machine (a shell script without one: sh %s)" % command
    elif number == errno.EACCES and path is not None:
        reason = (
            "it is a folder"
            if os.path.isdir(path)
            else "it is not executable (chmod +x)"
            if os.path.isfile(path)
            else reason
        )
    return "cannot run %s: %s" % (command, reason)


def _programs(command: bytes, search: bytes) -> List[bytes]:
    """Return the paths that a shell would try, in order."""
    if b"/" in command:
        return [command]
    return [os.path.join(folder or b".", command) for folder in search.split(b":")]


def _program() -> bytes:
    """Return the launcher, compiled: its interpreter is the one that runs this, and holds no source text for weeks."""
    parts = [(module.__name__.rpartition(".")[2], _compiled(module)) for module in (family, oomkill, parent)]
    return marshal.dumps(compile(_UNPACK, "<vigil-launcher>", "exec")) + marshal.dumps(parts)


def _compiled(module: ModuleType) -> CodeType:
    loader: Any = module.__loader__
    return compile(loader.get_source(module.__name__), "<%s>" % module.__name__, "exec", optimize=2)


def _fork(kept: List[int]) -> None:
    """Fork twice, so that the launcher is nobody's child and no session's leader's."""
    prctl = _prctl()
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _become_launcher(kept, prctl)
        finally:
            os._exit(1)
    try:
        os.waitpid(first, 0)
    except ChildProcessError:  # whoever started us ignores the ends of children, and so do we then
        pass


def _prctl() -> Optional[Any]:
    """Return prctl(2), or None in a Python without ctypes: orphans are then found by their mark only."""
    try:
        import ctypes  # noqa: PLC0415 - some interpreters are built without it

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def _become_launcher(kept: List[int], prctl: Optional[Any]) -> NoReturn:
    """Let go of all files, the terminal and the folder of whoever started us, and execute the launcher."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in STANDARD:
        os.dup2(nowhere, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in STANDARD and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the handle of the listing itself
                pass
    for number in kept:
        os.set_inheritable(number, True)  # noqa: FBT003 - it takes no keywords
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.chdir("/")
    env = {name: value for name, value in os.environb.items() if name != kin.MARK.encode()}
    program = sys.executable or "/proc/self/exe"
    os.execve(program, [program, "-I", "-S", "-c", _BOOT % kept[0], "vigil-launcher"], env)  # noqa: S606 - no shell is the point


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(handle, view) :]
    except BrokenPipeError:  # what it did not report says so
        pass


def _read_line(handle: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(handle, 4096)
        if not part:
            break
        line += part
    return line
