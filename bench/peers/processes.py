"""Start programs for a trial and leave none of them behind, whatever they started themselves. Linux only."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of whatever our descendants orphan (pm2's daemon, a server whose starter left)."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def parents() -> dict[int, int]:
    """Return each process's parent, by pid."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; the parent is the second field after it.
            found[int(stat.parent.name)] = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it ended meanwhile
    return found


def descendants(of: int) -> list[int]:
    """Return the pids below `of`, nearest first."""
    parent_of = parents()
    found: list[int] = []
    level = [of]
    while level:
        level = [pid for pid, parent in parent_of.items() if parent in level]
        found += level
    return found


def spawn(argv: Sequence[str], log: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its output appended to `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )


def end_all(patience_s: float = 5.0) -> None:
    """Kill every descendant of ours and reap it; raise TimeoutError where one stays."""
    deadline = time.monotonic() + patience_s
    while left := descendants(os.getpid()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} did not end")
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError):
                continue
        time.sleep(0.02)
