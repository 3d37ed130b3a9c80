"""Servers for the benchmarks: the fakes of tests/fakes with their side file of moments, and how vigil is called on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

import vigil
from sshd import HOST, Sshd
from vigil.errors import VigilError
from vigil.verdict import Verdict

ROOT = Path(__file__).resolve().parents[1]
FAKES = ROOT / "tests" / "fakes"
PYTHON = str(ROOT / ".venv" / "bin" / "python")
LIMIT_S = 90.0


@dataclass(frozen=True)
class Told:
    """A verdict and the moment at which it was out (Unix time, seconds); `dead`: who died last by its account."""

    word: str
    at_s: float
    dead: int | None


def fake(style: str, port: int, mark: Path, *flags: str) -> tuple[str, ...]:
    """Return the command of a fake server in an engine's dress."""
    names = {
        "vllm": ("vllm", "serve", "m"),
        "sglang": ("sglang", "serve", "--model-path", "m"),
        "llama": ("llama-server",),
    }
    program, *words = names[style]
    return (str(FAKES / "bin" / program), *words, "--port", str(port), "--mark", str(mark), *flags)


def looped(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command under a shell loop that starts it again at once."""
    return ("sh", str(FAKES / "loop.sh"), "--pause", "0", "--", *command)


def moments(mark: Path, kind: str) -> list[float]:
    """Return the times at which the fake noted a moment of this kind."""
    lines = mark.read_text().splitlines() if mark.exists() else []
    return [float(line.split()[1]) for line in lines if line.startswith(f"{kind} ")]


def deaths(mark: Path) -> dict[int, float]:
    """Return when each life of the fake died by its own account, by its pid."""
    found: dict[int, float] = {}
    pid = 0
    for line in mark.read_text().splitlines() if mark.exists() else []:
        what, at_s, *detail = line.split()
        if what == "BORN":
            pid = int(detail[0])
        elif what == "FAULT":
            found[pid] = float(at_s)
    return found


def ask_library(plan: vigil.Plan, *, follow: bool = False) -> Told:
    """Watch a plan in this process; return the last verdict and when it came."""

    async def watch() -> Told:
        told: tuple[Verdict, float] | None = None
        with anyio.fail_after(LIMIT_S):
            async with vigil.watch(plan, follow=follow) as watching:
                async for verdict in watching:
                    told = verdict, time.time()
        assert told is not None  # noqa: S101 - a watch ends with a verdict
        return Told(
            told[0].word,
            told[1],
            next((one.pid for one in reversed(told[0].attempts) if one.ended_s is not None), None),
        )

    return anyio.run(watch)


def ask_command(words: Sequence[str], env: dict[str, str] | None = None) -> Told:
    """Run `vigil ... --json`; return the verdict that it printed and when its line came."""
    with subprocess.Popen(
        [PYTHON, "-m", "vigil", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    ) as running:
        assert running.stdout  # noqa: S101 - for the type checker
        line = running.stdout.readline()
        at_s = time.time()
    said: dict[str, Any] = json.loads(line)
    return Told(
        said["verdict"],
        at_s,
        next((one["pid"] for one in reversed(said["attempts"]) if one["ended_s"] is not None), None),
    )


def attempted(ask: Callable[[], Told], wanted: str) -> Told | None:
    """Return the verdict, or None where there was none or another one than `wanted`, which is then printed."""
    try:
        told = ask()
    except (VigilError, TimeoutError, ValueError) as error:
        print(f"no verdict: {error!r}", file=sys.stderr, flush=True)
        return None
    if told.word == wanted:
        return told
    print(f"{told.word} in place of {wanted}", file=sys.stderr, flush=True)
    return None


def stop(name: str, env: dict[str, str] | None = None) -> None:
    """End a server that is left running."""
    words = [PYTHON, "-m", "vigil", "stop", name, "--grace", "1s"]
    subprocess.run(words, env={**os.environ, **(env or {})}, capture_output=True, check=False, timeout=60)


@contextmanager
def own_ssh(folder: Path) -> Iterator[str]:
    """Start an sshd on loopback whose host `ssh` finds; yield its name. The far side has a state folder of its own."""
    far = {"XDG_STATE_HOME": str(folder / "far"), "PATH": os.environ["PATH"]}
    with Sshd(env=far) as server:
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{server.path}{os.pathsep}{before}"
        try:
            yield HOST
        finally:
            os.environ["PATH"] = before
