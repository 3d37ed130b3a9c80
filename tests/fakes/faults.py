"""What can go wrong with the fake: deaths, sticking, and the moments at which they strike."""

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from talk import Talk
from workers import Workers


class Marks:
    """Notes the moments that a test measures from, in a side file: `WHAT <unix time> <detail>` lines."""

    def __init__(self, path: str) -> None:
        self._path = path

    def note(self, what: str, detail: str = "") -> None:
        """Append one line, stamped now."""
        if self._path:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(fd, f"{what} {time.time():.6f} {detail}\n".encode())
            os.close(fd)


class Pace:
    """Passes the time of the start-up; once stuck, it never returns."""

    def __init__(self) -> None:
        self._stuck = threading.Event()
        self._spin = False

    def sleep(self, duration_s: float) -> None:
        """Wait, unless the start gets stuck meanwhile."""
        if self._stuck.wait(duration_s):
            self.stay()

    def stick(self, *, spin: bool) -> None:
        """From now on there is no progress."""
        self._spin = spin
        self._stuck.set()

    def stay(self) -> NoReturn:
        """Make no progress, for ever: asleep, or burning a core."""
        while True:
            if not self._spin:
                time.sleep(3600)


def choose_death(deaths: str, attempts_file: str) -> str:
    """Return the death of this attempt from the comma list (the last one stays), counting attempts in the file."""
    kinds = [kind for kind in deaths.split(",") if kind]
    if not kinds:
        return "none"
    number = 0
    if attempts_file:
        fd = os.open(attempts_file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        number = os.fstat(fd).st_size
        os.write(fd, b".")
        os.close(fd)
    return kinds[min(number, len(kinds) - 1)]


class Deaths:
    """Ends the fake, or a part of it, in the way asked for."""

    def __init__(self, options: Any, talk: Talk, workers: Workers, marks: Marks) -> None:
        self._options, self._talk, self._workers, self._marks = options, talk, workers, marks

    def die(self, kind: str, flag: str = "--no-such-flag") -> None:
        """Die. Returns only for the death of a worker."""
        name, _, value = kind.partition(":")
        if name in {"worker", "worker-exit"}:
            self._marks.note("FAULT", kind)
            pid = self._workers.kill_first() if name == "worker" else self._workers.end_first()
            self._marks.note("WORKER", str(pid))
            return
        self._talk.muted = False
        self._talk.death(name, flag=flag)
        style = self._talk.style
        if name == "signal":
            self._by_signal(int(value), kind)
        if name == "memory":
            self._by_memory()
        if name == "abort":
            self._by_signal(signal.SIGABRT, kind)
        if name == "oom" and style.oom_signal:
            self._workers.kill_all()
            self._by_signal(style.oom_signal, kind)
        codes = {"exit": int(value or 1), "usage": style.usage_code, "port": style.port_code}
        self._leave(codes.get(name, 1), kind)

    def _by_signal(self, number: int, kind: str) -> None:
        ctypes.CDLL(None).signal(number, 0)  # Python's own refuses outside the main thread
        self._marks.note("FAULT", kind)
        os.kill(os.getpid(), number)
        time.sleep(5)

    def _by_memory(self) -> None:
        self._marks.note("FAULT", "memory")
        eaten = []
        while True:
            eaten.append(bytearray(os.urandom(1) * (4 << 20)))

    def _leave(self, code: int, kind: str) -> NoReturn:
        if not self._options.orphans:
            self._workers.kill_all()
        sys.stdout.flush()
        self._marks.note("FAULT", kind)
        os._exit(code)


class Fuse:
    """Strikes once, `after` seconds after the moment asked for has come."""

    def __init__(self, moment: str, after_s: float, strike: Any) -> None:
        self._moment, self._after_s, self._strike = moment, after_s, strike

    def come(self, moment: str) -> None:
        """Tell that a moment has come; the fuse of that moment is lit."""
        if moment == self._moment and self._strike is not None:
            timer = threading.Timer(self._after_s, self._strike)
            timer.daemon = True
            if self._after_s > 0:
                timer.start()
            else:
                self._strike()
