"""Run the real `vigil` over a real engine, in a clean folder with a state of its own; keep the traces that it leaves.

`VIGIL_KEEP_TRACES=1` puts each run's trace into `tests/traces/real-NAME.jsonl` and its verdict into `tests/traces/real.json`,
from where `test_real_traces.py` replays them.
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
LLAMA = ROOT / ".engines" / "llama"
MODEL = ENGINES / "models" / "SmolLM2-135M-Instruct"
TRACES = ROOT / "tests" / "traces"
COMMAND = (sys.executable, "-m", "vigil")
CARRIED = "VIGIL_REAL_RUN"


class Done(NamedTuple):
    """What a command left: its exit code, each JSON object that it printed, its stdout and stderr."""

    rc: int
    verdicts: list[dict[str, Any]]
    out: str
    err: str

    @property
    def verdict(self) -> dict[str, Any]:
        """The last verdict."""
        return self.verdicts[-1]

    @property
    def words(self) -> list[str]:
        """The words of the verdicts in their order."""
        return [one["verdict"] for one in self.verdicts]

    @property
    def code(self) -> str | None:
        """The code of the last verdict's cause."""
        cause = self.verdict["cause"]
        return cause["code"] if cause else None


class Running:
    """A `vigil` that runs; what it says goes to files."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path, patience_s: float) -> None:
        self.process = process
        self._out, self._err, self._patience_s = out, err, patience_s

    def verdicts(self) -> list[dict[str, Any]]:
        """Return the verdicts that it printed so far."""
        lines = self._out.read_text().splitlines(keepends=True)
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]
        return [one for one in found if "verdict" in one]

    def until(self, word: str) -> dict[str, Any]:
        """Wait until the verdict is `word`, and return it; fail if vigil ends before."""

        def look() -> dict[str, Any] | None:
            over = self.process.poll() is not None
            found = [one for one in self.verdicts() if one["verdict"] == word]
            assert found or not over, f"ended without {word}: {self._out.read_text()}{self._err.read_text()}"
            return found[-1] if found else None

        return until(look, f"the verdict {word}", self._patience_s)

    def end(self) -> Done:
        """Wait for its end."""
        self.process.wait(self._patience_s)
        return Done(self.process.returncode, self.verdicts(), self._out.read_text(), self._err.read_text())


class Site:
    """Runs `vigil` for one test. Every process that it leaves is known by a variable, and ended by pid."""

    def __init__(self, folder: Path, patience_s: float) -> None:
        self.state = folder / "state"
        self.cwd = folder / "empty"  # vLLM runs `python -m` for a part of its work: files here would be imported
        self.cwd.mkdir()
        self.folder = folder
        self.port = free_port()
        self.patience_s = patience_s
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(self.state),
            "PYTHONPATH": str(ROOT / "packages" / "vigil" / "src"),
            CARRIED: str(folder),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """Where the engine answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, *args: str) -> Running:
        """Start one `vigil`, to be looked at while it runs."""
        run = len(self._started) + 1
        out, err = self.folder / f"out.{run}", self.folder / f"err.{run}"
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                [*COMMAND, *args],
                env=self.env,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
            )
        self._started.append(process)
        return Running(process, out, err, self.patience_s)

    def __call__(self, *args: str) -> Done:
        """Run one `vigil` to its end."""
        return self.start(*args).end()

    def watch(
        self, name: str, *command: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> Running:
        """Start `vigil up --json` of an engine, recorded in the trace NAME."""
        # An engine that Python starts would find vigil's path on its own otherwise.
        pairs = [word for pair in {"PYTHONPATH": "", **(env or {})}.items() for word in ("--env", "=".join(pair))]
        return self.start(
            "up", "--json", "--name", "s", "--trace", str(self.trace(name)), *pairs, *options, "--", *command
        )

    def up(self, name: str, *command: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Done:
        """Run `vigil up --json` of an engine to its verdict; the trace is kept."""
        done = self.watch(name, *command, options=options, env=env).end()
        self.keep(name, done)
        return done

    def trace(self, name: str) -> Path:
        """Return where the trace of a run is."""
        return self.folder / f"{name}.jsonl"

    def keep(self, name: str, done: Done) -> None:
        """Keep a run's trace and its verdict where that was asked for."""
        if os.environ.get("VIGIL_KEEP_TRACES") != "1":
            return
        shutil.copyfile(self.trace(name), TRACES / f"real-{name}.jsonl")
        index = TRACES / "real.json"
        known = json.loads(index.read_text()) if index.exists() else {}
        known[name] = {"words": done.words, "cause": done.code}
        index.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")

    def processes(self) -> list[int]:
        """Return the pids of all that carries this test's mark in its environment."""
        wanted = f"{CARRIED}={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return [pid for pid in found if alive(pid)]

    def log(self) -> str:
        """Return the engine's log of the newest start."""
        return (self.state / "vigil/servers/s/current/server.log").read_text(errors="replace")

    def close(self) -> None:
        """End what is left. An engine's worker that gave itself a title lost the mark with its environment."""
        while pids := self.processes():
            trees = [child for pid in pids for child, _ in below(pid)]
            for pid in (*pids, *trees):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait(self.patience_s)


def until(look: Callable[[], Any], what: str, patience_s: float) -> Any:
    """Wait until a call returns something true, and return it."""
    deadline_s = time.monotonic() + patience_s
    while time.monotonic() < deadline_s:
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited in vain for {what}")


def pid_of(verdict: dict[str, Any]) -> int:
    """Return the pid of the main process of a verdict's last attempt."""
    return int(verdict["attempts"][-1]["pid"])


def below(pid: int) -> Iterator[tuple[int, str]]:
    """Yield each descendant of a process: its pid and its command line."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    for child, parent in parents.items():
        if parent == pid:
            with contextlib.suppress(OSError):
                yield child, Path(f"/proc/{child}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
            yield from below(child)


def worker(pid: int, title: str) -> int:
    """Return the pid of the one descendant whose title begins with `title`."""
    found = [child for child, line in below(pid) if line.startswith(title)]
    assert len(found) == 1, f"{title}: {list(below(pid))}"
    return found[0]


def free_port() -> int:
    """Return a TCP port of loopback that nothing listened on a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def cut_short(model: Path, into: Path, weights: str, share: float = 0.5) -> Path:
    """Make a copy of a model's folder whose file of weights was cut off, as by a full disk; the rest is linked."""
    into.mkdir()
    for path in model.iterdir():
        if path.name != weights:
            (into / path.name).symlink_to(path)
    with (model / weights).open("rb") as whole:
        (into / weights).write_bytes(whole.read(int((model / weights).stat().st_size * share)))
    return into


def assert_phases_sane(verdict: dict[str, Any]) -> None:
    """Assert that the phases follow each other, without a gap or a step back in time, up to `serving`."""
    phases = verdict["phases"]
    assert phases[-1]["name"] == "serving"
    assert phases[-1]["to_s"] is None
    for before, after in itertools.pairwise(phases):
        assert before["from_s"] <= before["to_s"] == after["from_s"]
    assert len({one["name"] for one in phases}) == len(phases)
