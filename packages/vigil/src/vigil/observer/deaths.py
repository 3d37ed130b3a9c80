"""Hear at once when a process ends, through pidfds where the kernel has them, else by looking."""

import os
import select
from typing import Dict, List, Tuple

from .process import is_alive

PIDFD_LIMIT = 256


class Deaths:
    """The processes whose end matters. `fileno` becomes readable when one ended, where the kernel is `immediate`."""

    def __init__(self, use_pidfd: bool = True) -> None:  # noqa: FBT001, FBT002
        self._epoll = select.epoll()
        self._by_fd: Dict[int, int] = {}
        self._gone: List[int] = []
        self._watched: Dict[int, Tuple[int, int]] = {}  # pid -> start ticks, pidfd or -1
        self.immediate = use_pidfd and hasattr(os, "pidfd_open")

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._epoll.fileno()

    @property
    def pending(self) -> bool:
        """Tell whether `ended` has something to say that `fileno` does not show."""
        return bool(self._gone)

    def add(self, pid: int, start_ticks: int) -> None:
        """Watch a process; one that is gone already is reported by the next `ended`."""
        if pid in self._watched:
            if self._watched[pid][0] == start_ticks:
                return
            self.drop(pid)
        fd = -1
        if self.immediate and len(self._by_fd) < PIDFD_LIMIT:
            try:
                fd = os.pidfd_open(pid)
            except OSError:
                fd = -1
        if not is_alive(
            pid, start_ticks
        ):  # asked after the opening: the pid may have been given to another process before
            if fd >= 0:
                os.close(fd)
            self._gone.append(pid)
            return
        if fd >= 0:
            self._epoll.register(fd, select.EPOLLIN)
            self._by_fd[fd] = pid
        self._watched[pid] = (start_ticks, fd)

    def drop(self, pid: int) -> None:
        """Watch it no more."""
        _, fd = self._watched.pop(pid, (0, -1))
        if fd >= 0:
            self._epoll.unregister(fd)
            del self._by_fd[fd]
            os.close(fd)

    def ended(self, *, look: bool = True) -> List[int]:
        """Return the pids that ended since they were added, and drop them. `look`: also at those without a pidfd."""
        gone, self._gone = self._gone, []
        if self._by_fd:
            gone += [self._by_fd[fd] for fd, _ in self._epoll.poll(0)]
        if look and len(self._watched) > len(self._by_fd):
            gone += [pid for pid, (ticks, fd) in self._watched.items() if fd < 0 and not is_alive(pid, ticks)]
        for pid in gone:
            self.drop(pid)
        return gone

    def close(self) -> None:
        """Give all descriptors back."""
        for pid in list(self._watched):
            self.drop(pid)
        self._epoll.close()
