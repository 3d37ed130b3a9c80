"""The processes below a root, kept up to date without reading all of /proc each time."""

from typing import Dict, List, Optional, Set, Tuple

from .mains import Process, name_process
from .process import Arrivals, Stat, age_s, all_pids, read_argv, read_exe, read_stat

YOUNG_S = 2.0  # a new process may still be the fork of its parent, or execute one program after another
TITLED_S = (
    30.0  # engines give their workers a title once they have imported what they need; a later one waits for a sample
)


class Member:
    """One process of the tree. It stays a member when its parent dies."""

    def __init__(self, stat: Stat) -> None:
        self.pid = stat.pid
        self.ppid = stat.ppid
        self.start_ticks = stat.start_ticks
        self.comm = stat.comm
        self.argv = read_argv(stat.pid)
        self.names = name_process(stat.comm, read_exe(stat.pid), self.argv)
        self.main: Optional[int] = None  # the main process that it belongs to or belonged to
        self.told: Optional[str] = None  # the title under which it was reported
        self.worker = False

    def renew(self, comm: str) -> None:
        """Read its name again: it executed another program, or gave itself a title."""
        self.comm = comm
        self.argv = read_argv(self.pid) or self.argv
        self.names = name_process(comm, read_exe(self.pid), self.argv)

    def title(self) -> str:
        """Return what `ps` would show."""
        return " ".join(self.argv).strip() or self.comm


class Tree:
    """A root and all that came from it. `adopter`: the process that orphans of this tree go to, itself no member."""

    def __init__(self, root: Stat, arrivals: Arrivals, now: float, adopter: int = 0) -> None:
        self.root = root.pid
        self.members: Dict[int, Member] = {root.pid: Member(root)}
        self.version = 0  # changes with every member that comes, goes or takes another name
        self._adopter = adopter
        self._arrivals = arrivals
        arrivals.look(now)
        self._take([pid for pid in all_pids() if pid != adopter])

    def grow(self, now: float) -> bool:
        """Take in what was started since the last look. Return True where something was."""
        return self._take(self._arrivals.look(now))

    def _take(self, pids: List[int]) -> bool:
        fresh = {
            pid: stat for pid in pids if pid not in self.members for stat in [read_stat(pid)] if stat and stat.alive
        }
        grown = False
        while True:
            found = [
                stat
                for stat in fresh.values()
                if stat.ppid in self.members or (self._adopter and stat.ppid == self._adopter)
            ]
            if not found:
                return grown
            grown = True
            self.version += 1
            for stat in found:
                del fresh[stat.pid]
                self.members[stat.pid] = Member(stat)

    def drop(self, pid: int) -> Optional[Member]:
        """Take out a process that ended."""
        self._arrivals.forget(pid)
        self.version += 1
        return self.members.pop(pid, None)

    def renew(self, *, all_names: bool) -> Tuple[Set[int], List[Stat]]:
        """Read the members whose names may have changed. Return the pids that are gone, and the stats that were read.

        `all_names`: read every member, also those that have not changed for long.
        """
        gone: Set[int] = set()
        stats: List[Stat] = []
        for member in list(self.members.values()):
            age = age_s(member.start_ticks)
            if not all_names and (age > TITLED_S or (member.worker and age > YOUNG_S)):
                continue
            stat = read_stat(member.pid)
            if stat is None or not stat.alive or stat.start_ticks != member.start_ticks:
                gone.add(member.pid)
                continue
            stats.append(stat)
            if stat.comm != member.comm or age < YOUNG_S:
                member.renew(stat.comm)
                self.version += 1
        return gone, stats

    def adopt_by_main(self, main: int) -> None:
        """Mark what came from the main process, for good: when that dies, its orphans are not the next main."""
        marked = True
        while marked:
            marked = False
            for member in self.members.values():
                if member.main is None and member.pid != main and self._belongs(member, main):
                    member.main = main
                    marked = True

    def _belongs(self, member: Member, main: int) -> bool:
        parent = self.members.get(member.ppid)
        return member.ppid == main or (parent is not None and parent.main == main)

    def release(self, main: int) -> None:
        """Take the mark back: that process turned out not to be the main one."""
        for member in self.members.values():
            if member.main == main:
                member.main = None

    def processes(self, main: Optional[int]) -> Dict[int, Process]:
        """Return the members as the choice of the main process wants them. What an earlier main left behind is retired."""
        return {
            member.pid: Process(
                member.pid,
                member.ppid,
                member.start_ticks,
                member.argv,
                member.names,
                retired=member.main not in {None, main},
            )
            for member in self.members.values()
        }
