"""The loop: take commands, let the site look at what is due, tick, sleep until the next look."""

import os
import platform
import select
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, Optional

from .life import read_boot_id
from .report import Reporter
from .site import Site
from .watch import read_watch

TICK_S = 0.9


class Observer:
    """Looks at one server. `write` gets each fact as a dict, one at a time, from the loop's thread or a probe's.

    `submit` may be called from any thread; `run` returns after `quit`. `congested` tells that facts pile up at the
    other end, so that the log waits; `broken` that nobody reads them any more, which ends the observer.
    """

    def __init__(
        self,
        write: Callable[[Dict[str, Any]], None],
        congested: Callable[[], bool] = lambda: False,
        broken: Callable[[], bool] = lambda: False,
    ) -> None:
        self._report = Reporter(write)
        self._congested = congested
        self._broken = broken
        self._commands: Deque[Dict[str, Any]] = deque()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._over = False
        self._site: Optional[Site] = None

    def submit(self, command: Dict[str, Any]) -> None:
        """Queue a command and wake the loop."""
        self._commands.append(command)
        self.wake()

    def wake(self) -> None:
        """Make the loop turn now."""
        try:
            os.write(self._wake_write, b"x")
        except OSError:  # full: it will wake anyway; closed: it is over
            pass

    def run(self, commands: Iterable[Dict[str, Any]] = ()) -> None:
        """Take the commands, then look and report until `quit`."""
        self._commands.extend(commands)
        self._report.say(
            "Reached",
            boot_id=read_boot_id(),
            host=os.uname().nodename,
            python=platform.python_version(),
            wall_s=time.time(),
        )
        poller = select.poll()
        poller.register(self._wake_read, select.POLLIN)
        tick_s = 0.0
        ended = True
        try:
            while not self._over and not self._broken():
                now = time.monotonic()
                self._take_commands(poller)
                due = self._site.turn(now, congested=self._congested(), ended=ended) if self._site else now + TICK_S
                if now >= tick_s - TICK_S * 0.1:  # a little early is better than a turn of its own
                    self._report.say("Ticked", wall_s=round(time.time(), 3))
                    tick_s = now + TICK_S
                ended = self._sleep(poller, min(due, tick_s))
        finally:
            self._close()

    def _sleep(self, poller: "select.poll", until_s: float) -> bool:
        """Wait until then, or for a wake-up. Return True where a process that is watched ended."""
        if self._commands or self._over:
            return True
        ready = {fd for fd, _ in poller.poll(max(0.0, until_s - time.monotonic()) * 1000)}
        if self._wake_read in ready:
            try:
                os.read(self._wake_read, 65536)
            except OSError:
                pass
        return bool(ready - {self._wake_read})

    def _take_commands(self, poller: "select.poll") -> None:
        while self._commands:
            command = self._commands.popleft()
            try:
                self._obey(command, poller)
            except Exception as error:
                self._report.trouble(f"command {command.get('do')!r}: {type(error).__name__}: {error}")

    def _obey(self, command: Dict[str, Any], poller: "select.poll") -> None:
        do = command.get("do")
        if do == "quit":
            self._over = True
        elif do == "watch":
            if self._site is not None:
                self._report.trouble("a second `watch` was not obeyed")
                return
            self._site = Site(read_watch(command), self._report, self.wake)
            poller.register(self._site.deaths.fileno(), select.POLLIN)
        elif self._site is None:
            self._report.trouble(f"command {do!r} came before `watch`")
        else:
            self._site.obey(command)

    def _close(self) -> None:
        if self._site is not None:
            self._site.close()
        os.close(self._wake_read)
        closing, self._wake_write = self._wake_write, -1
        os.close(closing)
