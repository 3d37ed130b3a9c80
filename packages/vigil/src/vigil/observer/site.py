"""Look at one server: its processes, its log and its port, each at its own pace."""

import os
import time
from typing import Any, Callable, Dict, List, Optional

from .attempts import Attempts
from .attested import Attesting, look, read_order
from .completion import Completions, read_ask
from .deaths import Deaths
from .drafting import measure, read_measure
from .exchange import Reply, Target, make_target
from .gpu import GpuReader
from .keys import KeyRing
from .log import LogTail
from .port import PortWatch
from .probe import Metrics, Probe, Standing
from .process import Stat
from .report import TITLE_CHARS, Reporter
from .resources import TreeMeter
from .stacks import Member, Stacks
from .surroundings import Surroundings
from .watch import Watch, read_paces

HURRY_S = 0.01
FASTEST_S = 0.02
JOIN_S = 0.2
EARLY_SHARE = 0.1
BLIND_S = 0.25


class Site:
    """All that is looked at for one `watch`. `wake` makes the loop turn now; it may be called from any thread."""

    def __init__(self, watch: Watch, report: Reporter, wake: Callable[[], None]) -> None:
        self.deaths = Deaths()
        self._watch = watch
        self._report = report
        self._wake = wake
        self._paces = watch.paces
        self._due = dict.fromkeys(("log", "tree", "sample"), 0.0)
        report.redactor.learn(watch.secrets)
        self._keys = KeyRing(report.redactor, watch.key, watch.key_flags, watch.key_variables)
        self._target: Optional[Target] = (
            make_target(watch.scheme, watch.host, watch.port) if watch.port is not None else None
        )
        self._gpu = GpuReader()
        self._around = Surroundings(report, self._gpu)
        self._attempts = Attempts(watch, self._target, report, self.deaths, self._keys, self._drain, self._around)
        self._log: Optional[LogTail] = None
        self._keep: Optional[List[bytes]] = None
        self._more_log = False
        self._meter = TreeMeter()
        self._stacks = Stacks(self._tell_stacks)
        self._attesting = Attesting(lambda fields: self._report.say("Attested", **fields))
        self._measuring = Attesting(lambda fields: self._report.say("SpeculationMeasured", **fields))
        self._main_seen: Optional[int] = None
        self._standing: Dict[str, Standing] = {}
        self._port: Optional[PortWatch] = None
        self._port_poked = False
        self._completions: Optional[Completions] = None
        if self._target is not None:
            self._port = PortWatch(
                self._target, report, self._tree_now, lambda: self._attempts.root.adopted, self._around.tell_port
            )
            self._completions = Completions(self._target, self._keys, report, self._answered)

    # --- commands

    def obey(self, command: Dict[str, Any]) -> None:
        """Carry out one command other than `watch` and `quit`."""
        do = command.get("do")
        if do == "pace":
            self._paces = read_paces(command, self._paces)
            self._due = dict.fromkeys(self._due, 0.0)
        elif do == "keep":
            texts = command.get("texts")
            self._keep = None if texts is None else [str(text).encode("utf-8") for text in texts if text]
            if self._log is not None:
                self._log.keep = self._keep
        elif do in ("probe", "metrics"):
            self._stand(command)
        elif do == "stacks":
            self._stacks.want(
                Member(pid, self._report.shorten(title, TITLE_CHARS)) for pid, title in self._attempts.titles()
            )
        elif do == "attest":
            self._attest(command)
        elif do == "measure" and self._target is not None:
            asked, target, key = read_measure(command), self._target, self._keys.key()
            self._measuring.want(lambda: measure(target, key, asked))
        elif do == "token" and self._completions is not None:
            self._completions.want(read_ask(command))
        else:
            self._report.trouble(f"command {do!r} cannot be obeyed")

    def _attest(self, command: Dict[str, Any]) -> None:
        """Ask what the processes run, in a thread: one that spins may keep its answer for seconds."""
        members, order, key = self._attempts.titles(), read_order(command), self._keys.key()
        folder, redactor = self._watch.life, self._report.redactor
        self._attesting.want(lambda: look(folder, members, order, redactor, self._target, key))

    def _tell_stacks(self, fields: Dict[str, Any]) -> None:
        shorten = self._report.shorten
        for stack in fields["stacks"]:
            stack["frames"] = [shorten(frame, TITLE_CHARS) for frame in stack["frames"]]
        self._report.say("StacksSeen", stacks=fields["stacks"], error=shorten(fields["error"], TITLE_CHARS))

    def _stand(self, command: Dict[str, Any]) -> None:
        name = f"{command.get('do')} {command.get('probe', '')}"
        standing = self._standing.pop(name, None)
        if standing is not None:
            standing.stop()
        if not command.get("every_s"):
            return
        if self._target is None:
            self._report.trouble(f"{name}: no port to ask")
            return
        if command["do"] == "probe":
            standing = Probe(command, self._target, self._keys, self._report, self._answered).standing
        else:
            standing = Metrics(command, self._target, self._keys, self._report).standing
        self._standing[name] = standing
        standing.start()

    def _answered(self, reply: Reply) -> None:
        if self._port is not None and self._port.answered(reply):
            self._port_poked = True
            self._wake()

    # --- the turn

    def turn(self, now: float, *, congested: bool, ended: bool) -> float:
        """Look at what is due, and at ends where some are known. Return when the next look is."""
        log_due = self._is_due("log", now, self._log_pace(now))
        tree_due = self._is_due("tree", now, self._paces.tree_s)
        sample_due = self._is_due("sample", now, self._paces.sample_s)
        if ended or tree_due or self.deaths.pending or (log_due and not self.deaths.immediate):
            self._try("the ends", lambda: self._see_ends(now, look=tree_due or not self.deaths.immediate))
        if tree_due or sample_due:
            self._try("the processes", lambda: self._see_tree(now, sample=sample_due))
        elif log_due:
            self._try("the processes", lambda: self._attempts.glance(now))
        if (log_due or self._more_log) and not congested:
            self._try("the log", lambda: self._see_log(now))
        self._try("an end", lambda: self._attempts.advance(now))
        self._try("the port", lambda: self._see_port(now, log_due=log_due, tree_due=tree_due))
        if self._more_log and not congested:
            return now
        return now + HURRY_S if self._attempts.hurried else min(self._due.values())

    def _is_due(self, what: str, now: float, pace_s: float) -> bool:
        # A little early together with something else is better than a turn of its own.
        if now < min(self._due[what], now + pace_s) - pace_s * EARLY_SHARE:
            return False
        self._due[what] = now + pace_s
        return True

    def _log_pace(self, now: float) -> float:
        if now < self._attempts.fast_until_s:
            return min(self._paces.log_s, FASTEST_S)
        # Without pidfds, ends are looked for at the pace of the log.
        return self._paces.log_s if self.deaths.immediate else min(self._paces.log_s, BLIND_S)

    def _try(self, what: str, look: Callable[[], None]) -> None:
        """Look, and outlive what it meets."""
        try:
            look()
        except Exception as error:
            self._report.trouble(f"{what} could not be looked at: {type(error).__name__}: {error}")

    def _see_ends(self, now: float, *, look: bool) -> None:
        main = self._attempts.main.pid if self._attempts.main else None
        ended = sorted(
            self.deaths.ended(look=look), key=lambda pid: pid == main
        )  # a child's end may be why the main process ended
        for pid in ended:
            self._attempts.ended(pid, now)
        if ended:
            self._attempts.glance(now)

    def _see_tree(self, now: float, *, sample: bool) -> None:
        stats = self._attempts.look(now, all_names=sample)
        if sample and stats:
            self._sample(stats)

    def _sample(self, stats: List[Stat]) -> None:
        use = self._meter.measure(stats)
        gpu = self._gpu.ask(stat.pid for stat in stats)
        self._report.say(
            "Sampled",
            cpu_s=use.cpu_s,
            io_bytes=use.io_bytes,
            rss_bytes=use.rss_bytes,
            processes=use.processes,
            gpu_bytes=gpu.used_bytes if gpu else None,
            gpu_busy=gpu.busy if gpu else None,
        )

    def _see_log(self, now: float) -> None:
        if self._log is None and not self._take_log():
            return
        assert self._log is not None  # noqa: S101 - for the type checker
        self._more_log = self._log.look(now)

    def _take_log(self) -> bool:
        """Open the log that was named, or the launcher's, from where this start began to write it."""
        watch = self._watch
        life = self._attempts.root.life
        path, offset = watch.log, watch.log_offset
        if watch.life is not None and (path is None or offset is None):
            if life is None:
                return False  # its place is not known yet
            if path is None or os.path.realpath(path) == os.path.realpath(life.log):
                path, offset = life.log, life.log_offset if offset is None else offset
        if not path:
            return False
        self._log = LogTail(path, self._report, offset, watch.log_inode)
        self._log.keep = self._keep
        return True

    def _drain(self, now: float) -> bool:
        if (self._log is None and not self._take_log()) or self._log is None:
            return True
        drained = self._log.drain(now)
        self._more_log = self._more_log or not drained
        return drained

    def _tree_now(self) -> List[int]:
        return self._attempts.pids(time.monotonic())

    def _see_port(self, now: float, *, log_due: bool, tree_due: bool) -> None:
        if self._port is None:
            return
        main = self._attempts.main.pid if self._attempts.main else None
        another = main is not None and main != self._main_seen
        if not (self._port_poked or tree_due or another or (log_due and not self._port.open)):
            return
        self._port_poked = False
        self._main_seen = main if main is not None else self._main_seen
        self._port.look(now, owner_may_have_changed=another)
        self._keys.face(self._port.owner)

    def close(self) -> None:
        """End every thread and give every descriptor back."""
        for standing in self._standing.values():
            standing.stop()
        if self._completions is not None:
            self._completions.stop()
        self._gpu.close()
        self._around.close()
        for standing in self._standing.values():
            standing.join(JOIN_S)
        if self._completions is not None:
            self._completions.join(JOIN_S)
        if self._log is not None:
            self._log.close()
        self.deaths.close()
