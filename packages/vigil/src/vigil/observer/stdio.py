"""Run the observer as a program: commands come in on descriptor 0, facts go out on descriptor 1, as JSON lines."""

import json
import os
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Optional

from .core import Observer

CONGESTED_BYTES = 8 << 20
GIVE_UP_S = 600.0
COMMAND_BYTES = 16 << 20


class Outlet:
    """A queue before a pipe, so that a reader who has gone or sleeps never stops the observer."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._queue: Deque[bytes] = deque()
        self._bytes = 0
        self._ready = threading.Condition()
        self._moved_s = time.monotonic()
        self.broken = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="vigil-outlet", daemon=True)
        self._thread.start()

    def write(self, fact: Dict[str, Any]) -> None:
        """Queue one fact."""
        line = json.dumps(fact, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"
        with self._ready:
            if self.broken or (fact["kind"] == "Ticked" and self._bytes > CONGESTED_BYTES):
                return
            self._queue.append(line)
            self._bytes += len(line)
            self._ready.notify()

    def congested(self) -> bool:
        """Tell whether the reader lags: the log waits in its file then. One that took nothing for long is gone."""
        if self._bytes and time.monotonic() - self._moved_s > GIVE_UP_S:
            self.broken = True
        return self._bytes > CONGESTED_BYTES

    def close(self, timeout_s: float) -> None:
        """Write what is queued, for at most `timeout_s` seconds."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self.broken:
            with self._ready:
                while not self._queue and not self._closed:
                    self._ready.wait()
                if not self._queue:
                    return
                line = self._queue.popleft()
                self._moved_s = time.monotonic()
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:
                self.broken = True
            with self._ready:
                self._bytes -= len(line)
                self._moved_s = time.monotonic()


def read_commands(fd: int, observer: Observer) -> None:
    """Submit each line of `fd` as a command; the end of input, or a line without end, is `quit`."""
    rest = b""
    while len(rest) < COMMAND_BYTES:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            command = _parse(line)
            if command is not None:
                observer.submit(command)
    observer.submit({"do": "quit"})


def _parse(line: bytes) -> Optional[Dict[str, Any]]:
    if not line.strip():
        return None
    try:
        command = json.loads(line)
    except (ValueError, RecursionError):
        command = None
    return command if isinstance(command, dict) else {"do": "not understood"}


def main() -> None:
    """Observe until the input ends or `quit` comes."""
    outlet = Outlet(1)
    observer = Observer(outlet.write, congested=outlet.congested, broken=lambda: outlet.broken)
    threading.Thread(target=read_commands, args=(0, observer), name="vigil-commands", daemon=True).start()
    observer.run()
    outlet.close(5.0)
