"""Where the files lie that a process sees: in a container, or another mount namespace, a path may lead to another file."""

import os
from typing import Dict


def root_of(pid: int) -> str:
    """Return what stands before a path of that process to reach its file; "" where it sees what we see, or nothing is known."""
    root = "/proc/%d/root" % pid
    try:
        same = os.readlink("/proc/%d/ns/mnt" % pid) == os.readlink("/proc/self/ns/mnt")
        return "" if same and os.path.samestat(os.stat(root), os.stat("/")) else root
    except OSError:
        return ""


class Paths:
    """Resolves paths of processes; a folder's links are asked once."""

    def __init__(self) -> None:
        self._roots: Dict[int, str] = {}
        self._homes: Dict[str, str] = {}

    def root(self, pid: int) -> str:
        """Return what stands before a path of that process, see `root_of`."""
        root = self._roots.get(pid)
        if root is None:
            root = self._roots[pid] = root_of(pid)
        return root

    def real(self, pid: int, path: str) -> str:
        """Return where a path leads; where the process has another file there, as it is called by it."""
        real = self._real(path)
        root = self.root(pid)
        try:
            return real if not root or os.path.samestat(os.stat(root + path), os.stat(real)) else path
        except OSError:
            return path

    def _real(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        home = self._homes.get(folder)
        if home is None:
            home = self._homes[folder] = os.path.realpath(folder + slash)
        whole = os.path.join(home, name)
        return os.path.realpath(whole) if os.path.islink(whole) else whole
