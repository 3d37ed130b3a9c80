"""Follow the lives of the server's main process: which one it is, when it begins and when it ends."""

import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .deaths import Deaths
from .exchange import Target
from .keys import KeyRing
from .life import Exit
from .mains import Choice, choose_main, is_helper, is_wrapper
from .oom import OomCounter
from .process import Arrivals, Stat, age_s, read_argv
from .report import ARGV_CHARS, ARGV_WORDS, TITLE_CHARS, Reporter
from .root import EXIT_WAIT_S, Root
from .surroundings import Surroundings
from .tree import TITLED_S, Member, Tree
from .watch import Watch

GRACE_S = 1.0  # a shell that started nothing for this long does the work itself
LATE_S = 2.0  # a process older than this when we began ran already
HURRY_S = 5.0  # how long a dead root is looked after at the fastest pace
FAST_S = 30.0  # after an end the next attempt is looked for at the fastest pace for this long
SETTLED_S = 2.0  # how often the tree of a main process that is not young is looked over for new children
SIGKILL = 9
SHELL_BASE = 128  # a shell tells of a signal so
BY_CHARS = 200
COMM_CHARS = 15  # the kernel keeps no more of a title


class Main(NamedTuple):
    """The main process of one attempt. `bare`: it is the root itself, so that its exit is the root's."""

    pid: int
    start_ticks: int
    argv: Tuple[str, ...]
    sure: bool
    bare: bool
    shell: bool
    oom: Optional[OomCounter]


class Attempts:
    """The root, its tree, and the attempts below it. `drain` ships what the log still holds and tells when it has."""

    def __init__(  # noqa: PLR0913, PLR0917 - it stands between all the parts
        self,
        watch: Watch,
        target: Optional[Target],
        report: Reporter,
        deaths: Deaths,
        keys: KeyRing,
        drain: Callable[[float], bool],
        around: Surroundings,
    ) -> None:
        self.tree: Optional[Tree] = None
        self.root = Root(watch, target, report)
        self.main: Optional[Main] = None
        self.over = False
        self._watch = watch
        self._report = report
        self._deaths = deaths
        self._keys = keys
        self._drain = drain
        self._around = around
        self._arrivals = Arrivals()
        self._began_s = time.monotonic()
        self._ending_s: Optional[float] = None
        self._sure_seen = False
        self._had_main = False
        self._stop_told = False
        self._quiet_s = 0.0
        self._fast_until_s = 0.0
        self._grown_s = 0.0
        self._told = -1  # the tree's version at the last look for children
        self._settled = -1  # the tree's version at the last choice of a main process

    # --- looks

    @property
    def hurried(self) -> bool:
        """Tell whether an end is being settled, so that the loop should turn every few milliseconds."""
        if self.over or self.root.died_s is None or self.main is not None:
            return self._ending_s is not None
        return time.monotonic() - self.root.died_s < HURRY_S

    @property
    def fast_until_s(self) -> float:
        """Return until when new attempts are looked for at the fastest pace, whatever was commanded."""
        return self._fast_until_s if self.main is None and self.root.died_s is None else 0.0

    def glance(self, now: float) -> None:
        """Look for the next main process while there is none. Cheap: it may run fifty times a second."""
        if self.main is None and not self.over:
            if self.tree is None and self._watch.life is not None and self.root.died_s is None:
                self._find_root(now)
            self._grow(now)
            self._settle()

    def look(self, now: float, *, all_names: bool = False) -> List[Stat]:
        """Look at everything: the root where there is none, the tree, the children. Return the stats that were read."""
        if self.over:
            return []
        if self.tree is None and self.root.died_s is None:
            self._find_root(now)
        stats = self._grow(now, all_names=all_names)
        self._settle()
        if self.main is not None and self.tree is not None:
            self._tell_children(self.main.pid, self.tree)
        return stats

    def pids(self, now: float) -> List[int]:
        """Return the pids of the tree as it is at this moment."""
        if self.tree is None and self.root.died_s is None and not self.over:
            self.root.hurry()  # asked for when another listener came: whose it is cannot wait for the next search
            self._find_root(now)
        if self.tree is None:
            return []
        self.tree.grow(now)
        return list(self.tree.members)

    def titles(self) -> List[Tuple[int, str]]:
        """Return pid and title of the main process and what belongs to it, the main process first."""
        if self.main is None or self.tree is None:
            return []
        main = self.main.pid
        members = [one for one in self.tree.members.values() if main in {one.pid, one.main}]
        return [(one.pid, one.title()) for one in sorted(members, key=lambda one: (one.pid != main, one.pid))]

    def _grow(self, now: float, *, all_names: bool = False) -> List[Stat]:
        if self.tree is None:
            return []
        if self.main is None or now - self._grown_s >= SETTLED_S or age_s(self.main.start_ticks) < TITLED_S:
            self.tree.grow(now)
            self._grown_s = now
        gone, stats = self.tree.renew(all_names=all_names)
        for pid in sorted(gone, key=lambda pid: self.main is not None and pid == self.main.pid):
            self.ended(pid, now)
        return stats

    # --- the root

    def _find_root(self, now: float) -> None:
        stat = self.root.find(now)
        if stat is not None:
            self._plant(stat, now)

    def _plant(self, stat: Stat, now: float) -> None:
        self._had_main = False
        self._sure_seen = False
        self._quiet_s = now
        self.tree = Tree(stat, self._arrivals, now, self.root.adopter)
        self._keys.know(stat.pid, read_argv(stat.pid))  # a script may echo what it alone was given
        self._deaths.add(stat.pid, stat.start_ticks)

    # --- the main process

    def _settle(self) -> None:
        """Choose the main process anew, and report it where it is another one."""
        if (
            self.tree is None
            or self._ending_s is not None
            or (self.main is not None and self._settled == self.tree.version)
        ):
            return
        self._settled = self.tree.version
        current = self.main.pid if self.main else None
        choice = choose_main(self.root.pid, self.tree.processes(current), self._watch.main_signs, current)
        if choice is None and not self._had_main and self.root.died_s is None and self._works_itself(self.tree):
            choice = Choice(self.root.pid, sure=False)
        if choice is None or (self._sure_seen and not choice.sure):
            return
        member = self.tree.members[choice.pid]
        if (
            not member.argv and age_s(member.start_ticks) < GRACE_S
        ):  # caught while it executes: its words are not there yet
            self._settled = -1
        elif self.main is None or self._replaces(choice, self.main):
            self._begin(choice, member)
        elif member.pid == self.main.pid and member.argv != self.main.argv:  # it executed again, or took a title
            self._keys.follow(member.pid, member.start_ticks, member.argv)
            self._around.note_place(member.pid, self._words_of(member))
            self.main = self.main._replace(argv=member.argv, sure=self.main.sure or choice.sure)

    def _works_itself(self, tree: Tree) -> bool:
        """Say whether a root that is a shell does the work itself: for a while no script came and went below it."""
        now = time.monotonic()
        if any(
            pid != tree.root and age_s(member.start_ticks) < GRACE_S and not is_helper(member.names)
            for pid, member in tree.members.items()
        ):
            self._quiet_s = now
        return now - self._quiet_s > GRACE_S

    def _replaces(self, choice: Choice, main: Main) -> bool:
        if choice.pid != main.pid:
            return (choice.sure and not main.sure) or main.shell
        # The same process: it may have executed the server in the shell's place.
        return main.shell and self.tree is not None and not is_wrapper(self.tree.members[choice.pid].names)

    def _begin(self, choice: Choice, member: Member) -> None:
        if self.main is not None and self.tree is not None:
            self.tree.release(self.main.pid)
        bare = member.pid == self.root.pid
        self._keys.follow(member.pid, member.start_ticks, member.argv)
        self._deaths.add(member.pid, member.start_ticks)
        self._around.begin(member.pid, self._words_of(member))
        self._had_main = True
        self._sure_seen = self._sure_seen or choice.sure
        oom = OomCounter(member.pid)
        self.main = Main(member.pid, member.start_ticks, member.argv, choice.sure, bare, is_wrapper(member.names), oom)
        up_s = age_s(member.start_ticks)
        self._told = -1
        self._say_started(self.main, up_s)

    def _words_of(self, main: Member) -> Tuple[str, ...]:
        """Return the command line, and that of the script above it, which may name what the command finds elsewhere."""
        root = self.tree.members.get(self.root.pid) if self.tree is not None else None
        return main.argv if root is None or root.pid == main.pid else (*main.argv, *root.argv)

    def _say_started(self, main: Main, up_s: float) -> None:
        argv = self._report.redactor.clean_argv(main.argv[:ARGV_WORDS])
        self._report.say(
            "MainStarted",
            pid=main.pid,
            start_ticks=main.start_ticks,
            argv=[self._report.shorten(word, ARGV_CHARS) for word in argv],
            wrapped=not main.bare,
            seen_late=up_s > time.monotonic() - self._began_s + LATE_S,
            sure=main.sure,
            up_s=round(up_s, 3),
        )

    def _tell_children(self, main: int, tree: Tree) -> None:
        if self._told == tree.version:
            return
        tree.adopt_by_main(main)
        self._told = tree.version
        self._around.know(tree.members)
        for member in tree.members.values():
            if member.main != main or member.worker:
                continue
            title = member.title()
            worker = any(
                title.startswith(start) or member.comm.startswith(start[:COMM_CHARS]) for start in self._watch.workers
            )
            if member.told is not None and not worker:
                continue
            member.told = self._report.shorten(title, TITLE_CHARS)
            member.worker = worker
            self._deaths.add(member.pid, member.start_ticks)
            self._report.say("ChildStarted", pid=member.pid, name=member.told, worker=worker)

    # --- ends

    def ended(self, pid: int, now: float) -> None:
        """Take note that a process of the tree ended."""
        self._see_stop()  # first: what ends from here on was asked to
        self._deaths.drop(pid)
        member = self.tree.drop(pid) if self.tree is not None else None
        if pid == self.root.pid and self.root.died_s is None:
            self.root.died_s = now
        if self.main is None:
            return
        if pid == self.main.pid:
            self._keys.face(None)  # whoever takes its port now is to be looked at first
            self._ending_s = self._ending_s or now
        elif self._ending_s is not None:
            return  # it followed the main process
        elif member is not None and member.told is not None and member.main == self.main.pid:
            self._around.tell_kernel()
            self._report.say(
                "ChildExited",
                pid=pid,
                name=member.told,
                worker=member.worker,
                lived_s=round(age_s(member.start_ticks), 3),
                oom_killed=self.main.oom is not None and self.main.oom.take(),
            )

    def advance(self, now: float) -> None:
        """Carry an end on: the exit code, the log's last lines, then the facts."""
        if self.over:
            return
        self._see_stop()
        if self.root.died_s is not None and self.main is None and not self._had_main and self.root.pid:
            self._begin_unseen(now)
        if self._ending_s is not None and self.main is not None and not self._end_main(self.main, now, self._ending_s):
            return
        if self.root.died_s is not None and self.main is None:
            self._end_root(now, self.root.died_s)

    def _begin_unseen(self, now: float) -> None:
        """Report an attempt that was over before it was seen, so that each life has one."""
        self._had_main = True
        root = self.root
        self.main = Main(root.pid, root.start_ticks, argv=(), sure=False, bare=True, shell=False, oom=None)
        self._say_started(self.main, age_s(root.start_ticks))
        self._around.begin_late(root.pid, self._watch.life)
        self._ending_s = now

    def _see_stop(self) -> None:
        """Report a stop once it is asked for: the server takes its time, and what it does meanwhile is no sickness."""
        by = None if self._stop_told else self.root.read_stop()
        if by is not None:
            self._stop_told = True
            self._report.say("StopAsked", by=self._report.shorten(by, BY_CHARS))

    def _end_main(self, main: Main, now: float, since_s: float) -> bool:
        if main.bare and self.root.awaits_exit(now - since_s):
            return False
        if not self._drain(now) and now - since_s < EXIT_WAIT_S * 2:
            return False
        self._say_exited(main, self.root.read_exit() if main.bare else None)
        self.main = None
        self._ending_s = None
        self._fast_until_s = now + FAST_S
        return True

    def _say_exited(self, main: Main, end: Optional[Exit]) -> None:
        killed = end is None or end.signal == SIGKILL
        counted = main.oom is not None and killed and main.oom.take()
        if main.oom is None and (killed or (end is not None and end.code == SHELL_BASE + SIGKILL)):
            self._around.look_back(main.start_ticks)
        self._around.tell_all(self.root.life.log if self.root.life is not None else self._watch.log)
        self._report.say(
            "MainExited",
            pid=main.pid,
            code=end.code if end else None,
            signal=end.signal if end else None,
            oom_killed=counted or (end is not None and end.oom_killed),
        )

    def _end_root(self, now: float, since_s: float) -> None:
        end = self.root.read_exit()
        if not self.root.is_told_in_full(end, now - since_s):
            return
        if self.root.returns:
            self._forget_tree()
            self.root.forget()
            return
        if not self._drain(now) and now - since_s < EXIT_WAIT_S * 2:
            return
        self.over = True
        self._forget_tree()
        fields: Dict[str, Any] = end._asdict() if end else {}
        fields.pop("over", None)
        self._report.say("RootExited", **fields, rebooted=self.root.rebooted or None)

    def _forget_tree(self) -> None:
        for pid in self.tree.members if self.tree else ():
            self._deaths.drop(pid)
        self.tree = None
        self._settled = self._told = -1
