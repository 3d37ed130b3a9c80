"""The launcher: parent and sub-reaper of the server. Writes its exit status down; lives as long as the server.

It runs in an interpreter of its own, which `launch` executes in a session of its own; it holds no file, terminal or connection of
anybody, so nothing that happens to us reaches the server. It sleeps in one system call until a child ends or a stop is asked for.

It must cost next to nothing for weeks and must not need a file of a Python that was upgraded meanwhile: so it and its two parts
(`family`, `oomkill`) come compiled, import nothing late, and do without `signal` (which pulls in `enum`), `json` and `typing`.
"""

import _signal as signals  # type: ignore[import-not-found]  # typeshed leaves the private module out
import os
import time

from .family import COMM, ask, below, read, start_ticks, table
from .oomkill import Deaths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Set, Tuple, TypedDict

    from .family import Process

    class Order(TypedDict):
        """What `launch` hands over; texts as the bytes that the kernel will see."""

        folder: bytes
        programs: "List[bytes]"
        command: "List[bytes]"
        env: "Dict[bytes, bytes]"
        cwd: bytes
        go: int
        reply: int
        log: int


LEFTOVER_GRACE_S = 3.0
STOP_GRACE_S = 30.0
LONGEST_PAUSE_S = 1.0
# exit.json and stop are reserved at the start and filled in place: a full disk can then lose neither.
RESERVED_BYTES = 4096


def quote(text: str) -> str:
    """Return a text as JSON."""
    plain = (
        letter if " " <= letter <= "~" and letter not in '"\\' else "\\u%04x" % min(ord(letter), 0xFFFD)
        for letter in text
    )
    return '"%s"' % "".join(plain)


def fill(path: bytes, data: bytes) -> None:
    """Overwrite a reserved file in place, in one write."""
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        os.pwrite(handle, data[:RESERVED_BYTES].ljust(RESERVED_BYTES), 0)
    finally:
        os.close(handle)


class Launcher:
    """One command, from its start to the end of the last process of its tree. All signals stay blocked; two are waited for."""

    def __init__(self, pid: int, folder: bytes, deaths: Deaths) -> None:
        self._pid = pid
        self._ticks = start_ticks(pid)
        self._folder = folder
        self._deaths = deaths
        self._ended = False
        self._code: "Optional[int]" = None
        self._signal: "Optional[int]" = None
        self._oom = False
        self._asked_by: "Optional[str]" = None
        self._kill_s: "Optional[float]" = None
        self._left: "Set[Tuple[int, int]]" = set()
        self._asked: "Set[Tuple[int, int]]" = set()

    def live(self) -> None:
        """Wait for the command's end, end what it left behind, write the exit status down."""
        pause_s = 0.01
        while not self._ended:
            if self._kill_s is not None and time.monotonic() >= self._kill_s:
                for pid, ticks in below({os.getpid()}, table()):
                    ask(pid, ticks, signals.SIGKILL)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)  # one in an uninterruptible wait dies when it can
                self._wait(time.monotonic() + pause_s)
            else:
                self._wait(self._kill_s)
        self._oom = self._killed() and self._deaths.is_oom(self._pid)
        self._wait(time.monotonic())  # what ended it may have come to us as well
        self._end_leftovers()
        self._tell(over=True)

    def _killed(self) -> bool:
        """Say whether it, or what a shell ran for it, was killed without our doing."""
        return self._asked_by is None and (self._signal == signals.SIGKILL or self._code == 128 + signals.SIGKILL)

    def _wait(self, until_s: "Optional[float]") -> None:
        """Sleep until a child ends, a stop is asked for, or `until_s` is reached."""
        awaited = (signals.SIGCHLD, signals.SIGTERM)
        if until_s is None:
            number = signals.sigwaitinfo(awaited).si_signo
        else:
            woken = signals.sigtimedwait(awaited, max(0.0, until_s - time.monotonic()))
            number = woken.si_signo if woken else 0
        self._reap()
        if number == signals.SIGTERM:
            self._begin_stop()

    def _reap(self) -> None:
        """Take all ended children; note how the command ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._ended = True
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._ended = True
                if os.WIFSIGNALED(status):
                    self._signal = os.WTERMSIG(status)
                else:
                    self._code = os.WEXITSTATUS(status)

    def _begin_stop(self) -> None:
        """Ask the command to end; a second stop can only shorten the grace of the first. A death before it was not asked for."""
        grace_s, by = self._read_stop()
        kill_s = time.monotonic() + grace_s
        self._kill_s = kill_s if self._kill_s is None else min(self._kill_s, kill_s)
        together = self._signal == signals.SIGTERM  # the end of a login session, or of the machine, asks all at once
        if self._asked_by is None and (together or not self._ended):
            self._asked_by = by
            ask(self._pid, self._ticks, signals.SIGTERM)

    def _read_stop(self) -> "Tuple[float, str]":
        grace, _, by = read(os.fsdecode(os.path.join(self._folder, b"stop"))).decode("utf-8", "replace").partition("\n")
        try:
            grace_s = max(0.0, float(grace))
        except ValueError:  # not asked by us: a plain `kill`, or the end of a login session
            return STOP_GRACE_S, "a signal to the launcher"
        return min(grace_s, 86400.0), by.strip()[:500] or "somebody"

    def _end_leftovers(self) -> None:
        """End what is left of the tree: politely, then not. After a stop the rest of its grace is theirs."""
        began_s = time.monotonic()
        told, pause_s = False, 0.005
        while True:
            self._reap()
            processes = table()
            left = below({os.getpid()}, processes)
            if not left:
                return
            now = time.monotonic()
            until_s = began_s + LEFTOVER_GRACE_S if self._kill_s is None else self._kill_s
            fresh = self._end(left, processes, kill=now >= until_s)
            if not told:  # an observer waits for the exit status, which must not wait for leftovers that refuse to end
                told = True
                self._tell(over=False)
            pause_s = 0.005 if fresh else min(pause_s * 2, LONGEST_PAUSE_S)
            self._wait(min(now + pause_s, max(until_s, now + 0.005)))

    def _end(self, left: "List[Tuple[int, int]]", processes: "Dict[int, Process]", *, kill: bool) -> bool:
        """Kill them all, or ask once each who lost its parent: it ends its own children. Return True where one is new."""
        fresh = False
        for pid, ticks in left:
            if kill:
                ask(pid, ticks, signals.SIGKILL)
            elif processes[pid][0] == os.getpid() and (pid, ticks) not in self._asked:
                self._asked.add((pid, ticks))
                ask(pid, ticks, signals.SIGTERM)
            fresh = fresh or (pid, ticks) not in self._left
            self._left.add((pid, ticks))
        return fresh

    def _tell(self, *, over: bool) -> None:
        """Write exit.json; where its folder was removed, nobody wants to know. `over`: nothing is left of the tree."""
        words = (
            ("code", "null" if self._code is None else "%d" % self._code),
            ("signal", "null" if self._signal is None else "%d" % self._signal),
            ("asked_by", "null" if self._asked_by is None else quote(self._asked_by)),
            ("left", "%d" % len(self._left)),
            ("oom_killed", "true" if self._oom else "false"),
            ("at_wall_s", "%.3f" % time.time()),
        )
        so_far = () if over else (("over", "false"),)
        text = "{%s}" % ", ".join('"%s": %s' % word for word in words + so_far)
        try:
            fill(os.path.join(self._folder, b"exit.json"), text.encode("ascii"))
        except OSError:
            pass


def become_command(order: "Order", go: int, failure: int) -> None:
    """Be the command once `go` says so: default signals, nothing blocked, a session of its own, three descriptors."""
    stage = b"start"
    try:
        if os.read(go, 1) != b"g":
            os._exit(127)
        os.setsid()
        for number in signals.valid_signals() - {signals.SIGKILL, signals.SIGSTOP}:
            signals.signal(number, signals.SIG_DFL)
        signals.pthread_sigmask(signals.SIG_SETMASK, ())
        os.dup2(order["log"], 1)
        os.dup2(order["log"], 2)
        stage = b"cwd"
        os.chdir(order["cwd"])
        stage = b"exec"
        execute(order)
    except OSError as error:
        os.write(failure, b"%s %d" % (stage, error.errno or 0))
    finally:
        os._exit(127)


def execute(order: "Order") -> None:
    """Try the candidates as a shell does: one that may not be run says more than those that are not there."""
    denied: "Optional[OSError]" = None
    missing = OSError(2, "not found")
    for program in order["programs"]:
        try:
            os.execve(program, order["command"], order["env"])  # noqa: S606 - what we are for
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            denied = denied or error
    raise denied or missing


def main(order: "Order") -> None:
    """Fork the command, say who it is, start it when told to, and live. Nothing was started where the teller dies first."""
    signals.pthread_sigmask(signals.SIG_BLOCK, signals.valid_signals())
    signals.signal(signals.SIGCHLD, signals.SIG_DFL)  # one inherited as ignored would lose every exit status
    for handle in (order["go"], order["reply"], order["log"]):
        os.set_inheritable(handle, False)  # noqa: FBT003 - it takes no keywords
    with open("/proc/self/comm", "wb", 0) as comm:
        comm.write(COMM)
    deaths = Deaths()
    go_read, go_write = os.pipe()
    failure_read, failure_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        become_command(order, go_read, failure_write)
    os.close(go_read)
    os.close(failure_write)
    life = Launcher(pid, order["folder"], deaths)
    words = (os.getpid(), start_ticks(os.getpid()) or 0, pid, start_ticks(pid) or 0)
    os.write(order["reply"], b"%d %d %d %d\n" % words)
    if os.read(order["go"], 1) == b"g":
        os.write(go_write, b"g")
    os.close(go_write)
    failed = os.read(failure_read, 100)
    os.write(order["reply"], failed)
    for handle in (failure_read, order["go"], order["reply"], order["log"]):
        os.close(handle)
    order["env"].clear()  # it holds the user's keys
    if not failed:
        life.live()
