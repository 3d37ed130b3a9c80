"""Find and end what belongs to a start where its launcher cannot: by parent, by session, and by a mark in the environment.

A process that left its session and lost its parents still carries the mark; one that overwrote its environment with a title
(`setproctitle`) still has its parents or its session.
"""

import os
import signal
import time
from typing import Any, Callable, Dict, List, Tuple

from ..observer.process import read_bytes
from . import family

MARK = "VIGIL_START"
ENVIRONMENT_BYTES = 4 << 20
KILL_PATIENCE_S = 10.0


def find(life: Dict[str, Any]) -> List[Tuple[int, int]]:
    """Return (pid, start ticks) of what lives of a start of this boot, its main process first; neither us nor a launcher."""
    processes = family.table()
    main, ticks = life["main"]["pid"], life["main"]["start_ticks"]
    roots = set()
    if main in processes and processes[main][2] == ticks:
        roots = {pid for pid, (_, session, _, _) in processes.items() if main in (pid, session)}
    roots |= _marked(life["mark"], processes)
    roots -= {os.getpid()} | {pid for pid in roots if processes[pid][3] == family.COMM}
    own = [(pid, processes[pid][2]) for pid in sorted(roots, key=lambda pid: (pid != main, pid))]
    return own + [one for one in family.below(roots, processes) if one[0] != os.getpid()]


def _marked(mark: str, processes: Dict[int, Tuple[int, int, int, bytes]]) -> "set[int]":
    if not mark:
        return set()
    line = ("%s=%s" % (MARK, mark)).encode()
    return {
        pid
        for pid in processes
        if line in (read_bytes("/proc/%d/environ" % pid, ENVIRONMENT_BYTES) or b"").split(b"\0")
    }


def end(life: Dict[str, Any], grace_s: float) -> int:
    """End what lives of a start: ask, give `grace_s`, kill until nothing comes any more; return how many there were."""
    seen: Dict[Tuple[int, int], None] = {}
    asked_s = time.monotonic()
    while True:
        left = find(life)
        now = time.monotonic()
        if not left or now > asked_s + grace_s + KILL_PATIENCE_S:
            return len(seen)
        kill = now >= asked_s + grace_s
        main_lives = left[0][0] == life["main"]["pid"]
        asked = left[:1] if main_lives else left  # the main process ends its workers itself, where it can
        for pid, ticks in left if kill else asked:
            if kill or (pid, ticks) not in seen:
                family.ask(pid, ticks, signal.SIGKILL if kill else signal.SIGTERM)
        seen.update(dict.fromkeys(left if kill else asked))
        time.sleep(0.02)


def wait_until(condition: Callable[[], bool], patience_s: float) -> bool:
    """Poll a fact; return whether it came true in time."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()
