"""Play one row of the fault table: start the fake, run the real `vigil` beside it, and see what it said and when."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = pathlib.Path(os.environ.get("FAULTS_SOURCE", ROOT / "packages" / "vigil" / "src"))
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "faults"), str(SOURCE)]

from rows import SSH, Row  # noqa: E402 - needs the path above

from sshd import HOST, Sshd, free_port  # noqa: E402 - needs the path above
from vigil.errors import TraceError  # noqa: E402 - needs the path above
from vigil.supervise.replay import replay  # noqa: E402 - needs the path above

FAKES = ROOT / "tests" / "fakes"
VIGIL = (sys.executable, "-m", "vigil")
SERVING = frozenset({"ready", "busy", "degraded"})
MARGIN_S = 40.0
MARKER = "FAULT_ROW"
LISTENS = "0A"  # as /proc/net/tcp has it


@dataclasses.dataclass(frozen=True, kw_only=True)
class Said:
    """One verdict as it was printed, with the wall time at which its line came."""

    at_s: float
    verdict: dict[str, Any]

    @property
    def word(self) -> str:
        """The verdict's word."""
        return str(self.verdict["verdict"])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a row. No `problems`: as expected. `delay_s` counts from the row's mark to the verdict."""

    row: Row
    where: str
    said: tuple[str, ...]
    cause: str | None
    delay_s: float | None
    took_s: float
    problems: tuple[str, ...]


Keep = Callable[[Outcome, pathlib.Path], None]


class Run:
    """One row being played. Acts and checks look at this."""

    def __init__(self, row: Row, where: str, scale: float, *, keep: Keep | None = None) -> None:
        self.row, self.where, self.scale, self.keep = row, where, scale, keep
        self.id = f"{re.sub('[^a-z0-9.-]+', '-', row.name.lower())}-{os.getpid()}-{time.time_ns() % 10**9}"
        self.name = self.id[:60]
        self.port = 0  # taken when it is played: one held long before may be somebody else's by then
        self.said: list[Said] = []
        self.env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self.exit_code: int | None = None
        self.server: subprocess.Popen[bytes] | None = None
        self.sshd: Sshd | None = None
        self.watcher: subprocess.Popen[bytes] | None = None
        self.ended_by_us = False
        self.act_problem: str | None = None
        self.stack = contextlib.ExitStack()

    @property
    def second_trace(self) -> pathlib.Path:
        """Return where the trace of a watcher lies that took another's place."""
        return self.folder / "trace-2"

    # What acts use.

    def s(self, seconds: float) -> float:
        """Scale a time."""
        return seconds * self.scale

    def note(self, what: str) -> None:
        """Write a moment into the side file."""
        with self.mark.open("a") as file:
            file.write(f"{what} {time.time():.6f}\n")

    def marks(self, what: str) -> list[float]:
        """Return the moments of one kind, in order."""
        lines = self.mark.read_text().splitlines() if self.mark.exists() else []
        return [float(line.split()[1]) for line in lines if line.startswith(what + " ")]

    def wait_mark(self, what: str) -> None:
        """Wait until a moment has come."""
        self._wait(lambda: bool(self.marks(what)), f"mark {what}")

    def wait_word(self, word: str) -> None:
        """Wait until a verdict was printed."""
        self._wait(lambda: any(said.word == word for said in list(self.said)), f"verdict {word}")

    def _wait(self, true: Any, what: str) -> None:
        deadline_s = time.monotonic() + self.limit_s
        while not true():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no {what}")
            time.sleep(0.01)

    def call(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a short vigil command against the row's host."""
        command = [*VIGIL, *words, *self._way()]
        return subprocess.run(
            command, env=self.env, capture_output=True, check=False, timeout=self.limit_s, cwd=self.folder
        )

    # The play.

    @property
    def limit_s(self) -> float:
        """Real seconds after which the row has failed."""
        return self.row.limit_s * self.scale + MARGIN_S

    def play(self, acts: dict[str, Any], checks: dict[str, Any]) -> Outcome:
        """Play the row and judge it. Whatever goes wrong on the way is a finding of that row, not the end of the others."""
        began_s = time.monotonic()
        took_s = 0.0
        problems: list[str] = []
        with self.stack:
            try:
                self._prepare(acts)
                self._go(acts)
                took_s = time.monotonic() - began_s
            except Exception as err:  # noqa: BLE001 - see above
                problems.append(f"{type(err).__name__}: {str(err)[:400]}")
            try:
                problems += self._judge(checks)
            except Exception as err:  # noqa: BLE001
                problems.append(f"judging: {type(err).__name__}: {str(err)[:400]}")
            outcome = Outcome(
                row=self.row, where=self.where, said=self.sequence(), cause=self._cause(), delay_s=self.delay_s(),
                took_s=round(took_s or time.monotonic() - began_s, 2), problems=tuple(problems),
            )  # fmt: skip
            if self.keep is not None and not problems and self.said and self.trace.exists():
                self.keep(outcome, self.trace)
            return outcome

    def _prepare(self, acts: dict[str, Any]) -> None:
        self.folder = pathlib.Path(
            self.stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-row-", ignore_cleanup_errors=True))
        )
        self.mark, self.errors, self.trace = self.folder / "mark", self.folder / "stderr", self.folder / "trace"
        self.port = free_port()
        self.state = self.folder / "state"
        self.state.mkdir()
        self.env["XDG_STATE_HOME"] = str(self.state)
        self.stack.callback(self._clear)
        if self.where == SSH:
            self.sshd = self.stack.enter_context(Sshd(env={"XDG_STATE_HOME": str(self.state)}))
            self.env["PATH"] = f"{self.sshd.path}:{self.env['PATH']}"
        prepare = acts.get(self.row.act, (None, None))[0]
        if prepare is not None:
            prepare(self)
        for command in self.row.before:
            beside = subprocess.Popen(
                self.expand(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env
            )
            self.stack.callback(beside.wait)
            self.stack.callback(beside.kill)
        if self.row.before:
            self._wait(self.port_held, "squatter")

    def port_held(self) -> bool:
        """Say whether somebody listens on the row's port."""
        table = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(entry[1].endswith(f":{self.port:04X}") and entry[3] == LISTENS for entry in table)

    def expand(self, words: Sequence[str]) -> list[str]:
        """Fill the placeholders."""
        names = {
            "port": str(self.port), "dir": str(self.folder), "mark": str(self.mark), "py": sys.executable,
            "fakes": str(FAKES), "scale": str(self.scale),
            "pid": str(self.server.pid) if self.server else "", "1GB": str(int((1 << 30) * self.scale)),
        }  # fmt: skip

        def fill(found: re.Match[str]) -> str:
            time_s = re.fullmatch(r"(\d+(?:\.\d+)?)s", found[1])
            return f"{float(time_s[1]) * self.scale:g}" if time_s else names[found[1]]

        return [re.sub(r"\{([^{}]+)\}", fill, word) for word in words]

    def command(self) -> list[str]:
        """Return the whole command line of the fake."""
        row = self.row
        plain = "{mark}" in row.command
        # Our own arrival is not scaled: what goes wrong once it is ready waits for us.
        extra = () if plain else ("--mark", "{mark}", "--scale", "{scale}", "--when-asked")
        return self.expand((*row.wrap, *row.command, *row.faults, *extra))

    def _way(self) -> list[str]:
        """Return the options that lead to the host."""
        if self.where == SSH:
            return ["--on", HOST]
        options = self.expand(self.row.options)
        return options[options.index("--reach") :][:2] if "--reach" in options else []

    def _go(self, acts: dict[str, Any]) -> None:
        row = self.row
        if row.verb == "wait":
            with (self.folder / "log").open("ab") as log:
                env = {**self.env, MARKER: self.id}
                self.server = subprocess.Popen(
                    self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, start_new_session=True
                )
            if "{pid}" not in row.options:
                threading.Thread(target=self.server.wait, daemon=True).start()
            self.watch(["wait", f"http://127.0.0.1:{self.port}"])
        else:
            unchecked = ["--no-check"] if row.verb == "up" else []  # a fault is what comes after the start
            self.watch([row.verb, *unchecked, "--name", self.name, "--env", f"{MARKER}={self.id}"], self.command())
        during = acts.get(row.act, (None, None))[1]
        if during is not None:
            threading.Thread(target=self._act, args=[during], daemon=True).start()
        self._await_end()

    def watch(self, words: list[str], command: list[str] | None = None, *, plain: bool = False) -> None:
        """Start a watching vigil; `plain`: without the row's own options (they were for the start)."""
        row = self.row
        options = [] if plain else self.expand(row.options)
        trace = [] if "--trace" in options else ["--trace", str(self.second_trace if plain else self.trace)]
        way = ["--on", HOST] if self.where == SSH else (self._way() if plain else [])
        limit = ["--timeout", f"{(row.limit_s + 300) * self.scale + 30:g}s"]
        follow = ["--follow"] if row.follow and not plain else []
        line = [*VIGIL, *words, *way, "--json", "--time-scale", f"{self.scale:g}", *limit, *trace, *follow, *options]
        with self.errors.open("ab") as errors:
            whole = [*line, "--", *command] if command else line
            self.watcher = subprocess.Popen(
                whole, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=self.folder
            )
        threading.Thread(target=self._read, args=[self.watcher], daemon=True).start()

    def _read(self, watcher: subprocess.Popen[bytes]) -> None:
        assert watcher.stdout is not None  # noqa: S101 - a pipe was asked for
        said = self.said
        with watcher.stdout:
            for line in watcher.stdout:
                now_s = time.time()
                with contextlib.suppress(ValueError):
                    said.append(Said(at_s=now_s, verdict=json.loads(line)))

    def _act(self, during: Any) -> None:
        try:
            during(self)
        except Exception as err:  # noqa: BLE001 - whatever went wrong in the act is a finding
            self.act_problem = f"act: {type(err).__name__}: {err}"

    def _await_end(self) -> None:
        """Wait for the watcher; end it ourselves once a followed row has said all that was expected."""
        deadline_s = time.monotonic() + self.limit_s
        while time.monotonic() < deadline_s:
            watcher = self.watcher
            assert watcher is not None  # noqa: S101 - started before
            code = watcher.poll()
            if code is not None and watcher is self.watcher and not self._will_restart(code):
                self.exit_code = code
                time.sleep(0.05)
                return
            if code is None and self.row.follow and self.row.expect[-1] in SERVING and self._said_all():
                self.ended_by_us = True
                watcher.send_signal(signal.SIGINT)
                watcher.wait(timeout=10)
            time.sleep(0.01)
        raise TimeoutError(f"no end within {self.limit_s:.0f} s")

    def _will_restart(self, code: int) -> bool:
        return code == -signal.SIGKILL and self.row.act.startswith("kill_watcher") and self.act_problem is None

    def _said_all(self) -> bool:
        return self.sequence() == self.row.expect and not self.row.act.startswith("kill_watcher")

    def sequence(self) -> tuple[str, ...]:
        """Return the words said, each once until another comes; or the error's code where there was none."""
        found: list[str] = []
        for said in list(self.said):
            if not found or found[-1] != said.word:
                found.append(said.word)
        if not found and self.exit_code is not None:
            return (f"error:{self.exit_code}",)
        return tuple(found)

    # The judgement.

    def _cause(self) -> str | None:
        cause = self.said[-1].verdict.get("cause") if self.said else None
        return cause["code"] if cause else None

    def delay_s(self) -> float | None:
        """Return seconds from the last mark before the verdict to the verdict (the first `ready` for TOKENS)."""
        if not self.said:
            return None
        tokens = self.row.mark == "TOKENS"
        said = self.said[0] if tokens and self.row.expect == ("ready",) else self.said[-1]
        late_s = 0.05 if tokens else 0.0  # the fake notes that tokens can be had after they can
        before = [at_s for at_s in self.marks(self.row.mark) if at_s <= said.at_s + late_s]
        return round(said.at_s - before[-1], 3) if before else None

    def _judge(self, checks: dict[str, Any]) -> Iterator[str]:
        row = self.row
        self.said = list(self.said)  # what comes from here on is our own cleaning up
        if self.act_problem:
            yield self.act_problem
        said = self.sequence()
        if said != row.expect:
            last = self.errors.read_text(errors="replace").strip().splitlines()[-1:] if self.errors.exists() else []
            reason = self.said[-1].verdict.get("reason", "") if self.said else (last[0] if last else "")
            yield f"said {' '.join(said) or 'nothing'}: {reason[:200]}"
        if row.cause and self._cause() not in row.cause:
            yield f"cause {self._cause()}, not {'/'.join(row.cause)}"
        if self.said and self.exit_code != self.said[-1].verdict["exit_code"] and not self.ended_by_us:
            yield f"exit code {self.exit_code}, but the verdict says {self.said[-1].verdict['exit_code']}"
        for name in row.checks:
            problem = checks[name](self)
            if problem:
                yield f"{name}: {problem}"
        yield from self._judge_replay()
        yield from self._judge_stop()

    def _judge_replay(self) -> Iterator[str]:
        """Replay the trace as `vigil replay` does: the same verdict, of the same cause."""
        if not self.trace.exists() or not self.said or self.row.act.startswith("kill_watcher"):
            return
        try:
            *_, replayed = replay(self.trace)
        except TraceError as err:
            yield f"replay failed: {err}"
            return
        cause = replayed.cause.code if replayed.cause else None
        if (str(replayed.word), cause) != (self.said[-1].word, self._cause()):
            yield f"replays to {replayed.word} {cause}"

    def _judge_stop(self) -> Iterator[str]:
        """Stop what still runs: nothing of it may stay behind."""
        nothing_started = (
            self.exit_code in {1, 2} or self.row.expect[0].startswith("error") or self.sequence() == ("refused",)
        )
        if self.row.verb == "wait" or nothing_started or not self.processes():
            return
        if self.sshd is not None:
            self.sshd.proxy.mend()
        try:
            done = self.call("stop", self.name, "--grace", f"{max(1.0, self.s(5)):g}s")
        except subprocess.TimeoutExpired:
            yield "vigil stop hangs"
            return
        if done.returncode != 0 and "gone" not in self.row.checks and self.row.act != "reboot":
            yield f"vigil stop: exit {done.returncode} {(done.stdout + done.stderr).decode(errors='replace').strip()[-200:]}"
        if left := self.left():
            yield f"left behind after the stop: {left}"

    def left(self, patience_s: float = 2.0) -> list[str]:
        """Return the processes of this row that still live after a short patience."""
        deadline_s = time.monotonic() + patience_s
        while (found := self.processes()) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        return [f"{pid} {name}" for pid, name in found.items()]

    def processes(self, text: str = "") -> dict[int, str]:
        """Return pid and name of the living processes that carry the row's marker in their environment, or `text`."""
        wanted = (text or f"{MARKER}={self.id}").encode()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
        return found

    def _clear(self) -> None:
        """End what this row started, by pid."""
        state = f"XDG_STATE_HOME={self.state}"
        for pid in {**self.processes(), **self.processes(state)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in (self.watcher, self.server):
            if process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.kill()
                    process.wait(timeout=5)
