"""What each peer says about a server: one adapter a peer, each a `start` that returns the wait for its verdict.

Every peer is used as its users use it, with its defaults, except for its total limit, which is the trial's budget.
Where a peer only waits (the loops, wait-on), the server is started beside it; the others start it themselves.
A verdict's `answer` says in one word how the peer's user would read it; `text` is what it said.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from peers.processes import spawn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = Path(os.environ.get("VIGIL_PEERS") or ROOT / ".peers")
GRACE_S = 10.0  # a peer may say its word this much after the budget
# `silent`: it said nothing that a user could act on.
Answer = Literal["ready", "failed", "looping", "stalled", "timed out", "silent"]
VIGIL_ANSWERS: dict[str, Answer] = {
    "ready": "ready",
    "busy": "ready",
    "degraded": "ready",
    "refused": "failed",
    "crashed": "failed",
    "unhealthy": "failed",
    "crash_looping": "looping",
    "stalled": "stalled",
    "timed_out": "timed out",
}


@dataclass(frozen=True)
class Said:
    """A verdict: how it reads, what was said, and when (Unix time, seconds)."""

    answer: Answer
    text: str
    at_unix_s: float


@dataclass(frozen=True)
class Trial:
    """One server under one peer: the command, where it listens, and how long the peer may take, in seconds."""

    argv: list[str]
    port: int
    folder: Path
    budget_s: float

    @property
    def url(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """Return where the server's output goes."""
        return self.folder / "server.log"


# Starts the server and the peer; returns the wait for the verdict.
Start = Callable[[Trial], Callable[[], Said]]


@dataclass(frozen=True)
class Peer:
    """A tool that starts or awaits a server."""

    name: str
    version: str
    start: Start


@dataclass(frozen=True)
class Heard:
    """What a command printed, its exit code (None: it still ran at the limit), when it ended, and when its last line came."""

    lines: list[str]
    code: int | None
    at_unix_s: float
    said_unix_s: float

    @property
    def last(self) -> str:
        """Return the last line, or nothing."""
        return self.lines[-1] if self.lines else ""


def ask(argv: list[str], trial: Trial, env: dict[str, str] | None = None) -> Callable[[], Heard]:
    """Start a command; return a function that waits for its end, at most for the budget and the grace."""
    with (trial.folder / "peer.err").open("wb") as errors:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **(env or {})},
        )

    lines: list[tuple[str, float]] = []
    assert running.stdout  # noqa: S101 - opened with a pipe
    output = running.stdout
    reading = threading.Thread(
        target=lambda: lines.extend((line.rstrip("\n"), time.time()) for line in output), daemon=True
    )
    reading.start()

    def wait() -> Heard:
        try:
            code = running.wait(timeout=trial.budget_s + GRACE_S)
        except subprocess.TimeoutExpired:
            return Heard([], None, time.time(), time.time())
        ended = time.time()
        reading.join(GRACE_S)
        return Heard([line for line, _ in lines], code, ended, lines[-1][1] if lines else ended)

    return wait


def waits(command: Callable[[Trial], list[str]], read: Callable[[Heard], Said]) -> Start:
    """Make the start of a peer that only waits: the server first, then the command."""

    def start(trial: Trial) -> Callable[[], Said]:
        spawn(trial.argv, trial.log)
        wait = ask(command(trial), trial)
        return lambda: read(wait())

    return start


def read_loop(heard: Heard) -> Said:
    """Read one of the shell loops: its last line; the first loop says nothing when its tries are used up."""
    if heard.last.lower().startswith("ready"):
        return Said("ready", heard.last, heard.at_unix_s)
    if heard.code is None:
        return Said("silent", "still waiting", heard.at_unix_s)
    if heard.code == 0:
        return Said("silent", "nothing said, exit 0", heard.at_unix_s)
    return Said("timed out", heard.last, heard.at_unix_s)


def read_wait_on(heard: Heard) -> Said:
    """Read wait-on: exit code 0 is ready; it prints nothing else by default."""
    if heard.code == 0:
        return Said("ready", "exit 0", heard.at_unix_s)
    return Said("timed out", f"exit {heard.code}", heard.at_unix_s)


def loop_status(interval_s: int) -> Peer:
    """Make the loop of the first story; with its own 10 s, and faster, as a careful user might have it."""

    def command(trial: Trial) -> list[str]:
        tries = int(trial.budget_s // interval_s)
        return ["sh", str(HERE / "loop_status.sh"), trial.url, str(trial.log), str(interval_s), str(tries)]

    return Peer(f"loop: status, {interval_s} s", "story 1", waits(command, read_loop))


def loop_body_command(trial: Trial) -> list[str]:
    """Return the loop of the second story with its own 10 s."""
    return ["sh", str(HERE / "loop_body.sh"), trial.url, str(trial.log), "10", str(int(trial.budget_s))]


def wait_on_command(trial: Trial) -> list[str]:
    """Return wait-on with GET: the engines answer its default, HEAD, with 405."""
    program = str(PEERS / "node/node_modules/.bin/wait-on")
    return [program, "--timeout", str(int(trial.budget_s * 1000)), f"http-get://127.0.0.1:{trial.port}/health"]


def asked(name: str) -> Start:
    """Make the start of a Python tool whose own functions start the server: a script in its environment calls them."""

    def start(trial: Trial) -> Callable[[], Said]:
        script = [str(PEERS / name / "bin/python"), str(HERE / f"ask_{name}.py")]
        wait = ask([*script, str(trial.budget_s), trial.url, str(trial.log), *trial.argv], trial)

        def verdict() -> Said:
            heard = wait()
            # The time in the JSON is the tool's own, without the end of its interpreter.
            return Said(**json.loads(heard.last)) if heard.last else Said("silent", "no word", heard.at_unix_s)

        return verdict

    return start


def start_vigil(trial: Trial) -> Callable[[], Said]:
    """Run `vigil up --json`, which starts the server; its state goes into the trial's folder."""
    command = [str(ROOT / ".venv/bin/python"), "-m", "vigil", "up", "--json", "--timeout", f"{trial.budget_s:g}s"]
    path = os.pathsep.join(filter(None, [str(ROOT / "packages/vigil/src"), os.environ.get("PYTHONPATH")]))
    env = {"PYTHONPATH": path, "XDG_STATE_HOME": str(trial.folder / "state")}
    wait = ask([*command, "--log", str(trial.log), "--", *trial.argv], trial, env)

    def verdict() -> Said:
        heard = wait()
        if not heard.lines:
            errors = (trial.folder / "peer.err").read_text(errors="replace").splitlines()
            return Said("silent", f"exit {heard.code}: {errors[-1] if errors else ''}", heard.at_unix_s)
        told = json.loads("\n".join(heard.lines))
        cause = told.get("cause")
        named = f" ({cause['code']})" if cause else ""
        return Said(VIGIL_ANSWERS.get(told["verdict"], "silent"), told["verdict"] + named, heard.said_unix_s)

    return verdict


WAITING: tuple[Peer, ...] = (
    Peer("vigil", "this tree", start_vigil),
    loop_status(10),
    loop_status(1),
    Peer("loop: body, 10 s", "story 2", waits(loop_body_command, read_loop)),
    Peer("wait-on", "9.5.1", waits(wait_on_command, read_wait_on)),
    Peer("inferlint", "0.3.1", asked("inferlint")),
    Peer("polyserve", "0.1.0", asked("polyserve")),
)
