"""The fake's worker processes: they carry an engine's titles and do nothing but live."""

import contextlib
import os
import signal
import time

from proctitle import set_title


class Workers:
    """Children forked before any thread exists. `pids` holds those still thought alive."""

    def __init__(self, titles: tuple[str, ...], count: int) -> None:
        self.pids: list[int] = []
        for number in range(count):
            title = titles[min(number, len(titles) - 1)] if titles else "fake::worker"
            self.pids.append(self._fork(title))

    def _fork(self, title: str) -> int:
        pid = os.fork()
        if pid:
            return pid
        set_title(title)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    def kill_first(self) -> int:
        """Kill the first worker as the kernel's OOM killer would, reap it, and return its pid."""
        pid = self.pids.pop(0)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return pid

    def end_first(self) -> int:
        """Make the first worker leave by SIGTERM and leave it unreaped for the kernel's zombie list; return its pid."""
        pid = self.pids.pop(0)
        os.kill(pid, signal.SIGTERM)
        return pid

    def kill_all(self) -> None:
        """End the workers that still live."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.pids.clear()
