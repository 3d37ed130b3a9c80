"""The process that everything else is below: find it, say when it is gone, read what its launcher wrote about its end."""

import time
from typing import Optional

from .exchange import Target
from .life import Exit, Life, read_boot_id, read_exit, read_life, read_stop
from .process import Stat, is_alive, read_stat
from .report import Reporter
from .roots import find_by_log, find_by_port, find_by_text
from .watch import Watch

SEARCH_SHARE = 20  # a search that takes t is not made more often than every 20 t
EXIT_WAIT_S = 2.0  # how long the launcher may take to write the exit code down
LEFT_WAIT_S = 0.5  # how long what is left of its tree may take to end, before the end is told without it


class Root:
    """The root of the tree: our launcher's child, the pid that was given, or whoever fits what was asked for.

    `died_s`: when it was seen to be gone (monotonic, seconds), None while it lives or is looked for; `adopted`: known by its port
    only.
    """

    def __init__(self, watch: Watch, target: Optional[Target], report: Reporter) -> None:
        self.pid = 0
        self.start_ticks = 0
        self.died_s: Optional[float] = None
        self.life: Optional[Life] = None
        self.adopted = False
        self.rebooted = False
        self._watch = watch
        self._target = target
        self._report = report
        self._search_s = 0.0

    # --- the search

    def find(self, now: float) -> Optional[Stat]:
        """Return the root where it is found alive now; one that is known to have ended is marked as dead."""
        stat = self._find_launched(now, self._watch.life) if self._watch.life is not None else self._find_other(now)
        if stat is not None:
            self.pid, self.start_ticks = stat.pid, stat.start_ticks
        return stat

    def hurry(self) -> None:
        """Search at the next call, however much the last one took."""
        self._search_s = 0.0

    def forget(self) -> None:
        """Look for another one: somebody may start it again."""
        self.pid = self.start_ticks = 0
        self.died_s = None

    def _find_other(self, now: float) -> Optional[Stat]:
        if now < self._search_s:
            return None
        begun = time.thread_time()
        pid = self._search(self._watch)
        self._search_s = now + (time.thread_time() - begun) * SEARCH_SHARE
        stat = read_stat(pid) if pid else None
        if stat is not None and stat.alive:
            return stat
        if self._watch.pid is not None:
            self.died_s = now
        return None

    def _search(self, watch: Watch) -> Optional[int]:
        if watch.pid is not None:
            return watch.pid
        if watch.match is not None:
            return find_by_text(watch.match, watch.main_signs)
        pid = find_by_log(watch.log) if watch.log else None
        self.adopted = pid is None
        return pid if pid is not None or self._target is None else find_by_port(self._target, watch.main_signs)

    def _find_launched(self, now: float, folder: str) -> Optional[Stat]:
        if self.life is None:
            self.life = read_life(folder)
            if self.life is None:
                return None
            self._say_launched(self.life)
        pid, start_ticks = self.life.main
        if self.life.boot_id not in ("", read_boot_id()):
            # Its pid and its times are of another boot: there is no attempt to tell.
            self.rebooted = self.read_exit() is None
            self.died_s = now
            return None
        stat = read_stat(pid)
        if stat is not None and stat.alive and stat.start_ticks == start_ticks:
            return stat
        self.pid, self.start_ticks = pid, start_ticks
        self.died_s = now
        return None

    def _say_launched(self, life: Life) -> None:
        self._report.say(
            "Launched",
            launcher_pid=life.launcher[0],
            pid=life.main[0],
            start_ticks=life.main[1],
            log=life.log,
            log_offset=life.log_offset,
            attester=life.attester or None,
        )

    # --- its end

    def read_exit(self) -> Optional[Exit]:
        """Return the end as the launcher wrote it down, or None."""
        return read_exit(self._watch.life) if self._watch.life is not None else None

    def read_stop(self) -> Optional[str]:
        """Return who asked for the end, or None."""
        return read_stop(self._watch.life) if self._watch.life is not None and self.life is not None else None

    def awaits_exit(self, since_s: float) -> bool:
        """Tell whether the launcher has yet to write the exit code down, `since_s` seconds after the end."""
        launched = self._watch.life is not None
        return launched and since_s < EXIT_WAIT_S and self._launcher_lives() and self.read_exit() is None

    def is_told_in_full(self, end: Optional[Exit], since_s: float) -> bool:
        """Say whether `end` is all that there will be: leftovers that refuse to end are not waited for."""
        if self._watch.life is None or self.rebooted:
            return True
        if end is not None:
            return end.over or since_s >= LEFT_WAIT_S or not self._launcher_lives()
        return not self._launcher_lives() and since_s >= EXIT_WAIT_S

    @property
    def returns(self) -> bool:
        """Tell whether another root may come: nobody named this one by its pid, and we did not start it."""
        return self._watch.life is None and self._watch.pid is None

    @property
    def adopter(self) -> int:
        """Return the pid to which orphans of the tree go, 0 where there is none of ours."""
        return self.life.launcher[0] if self.life is not None else 0

    def _launcher_lives(self) -> bool:
        return self.life is not None and is_alive(*self.life.launcher)
