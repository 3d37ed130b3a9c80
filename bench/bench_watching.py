"""What watching a server that is ready costs: processor time and memory of vigil and its launcher, and tokens of the server."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_figures import Figure
from bench_servers import PYTHON, fake, stop
from sshd import free_port

CORE_PERCENT, MEMORY_MIB, TOKENS_PER_MINUTE = 0.3, 60.0, 6.0
SETTLED_S = 35.0  # titles and children of a young process are read more often
TRAFFIC = ("--background-load", "200")
START = ("--load", "500ms", "--warmup", "50ms")


@dataclass(frozen=True)
class Watched:
    """A server under `vigil up --follow`: the pids of vigil and its launcher, and the server's log."""

    name: str
    process: subprocess.Popen[bytes]
    launcher: int
    log: Path

    @property
    def pids(self) -> tuple[int, int]:
        """Return ours."""
        return self.process.pid, self.launcher

    def end(self) -> None:
        """End the watching and the server."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)
        stop(self.name)


def begin(folder: Path, name: str, command: Sequence[str]) -> Watched:
    """Start a server and return once it is ready."""
    with (folder / f"{name}.err").open("wb") as errors:
        process = subprocess.Popen(
            [PYTHON, "-m", "vigil", "up", "--no-check", "--json", "--follow", "--name", name, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout  # noqa: S101 - for the type checker
    said = json.loads(process.stdout.readline())
    if said["verdict"] != "ready":
        raise RuntimeError(f"{said['verdict']} in place of ready")
    life = json.loads((Path(said["log"]).parent / "life.json").read_text())
    return Watched(name, process, life["launcher"]["pid"], Path(said["log"]))


def busy_s(pid: int) -> float:
    """Return the processor time of a process, of its ended threads too, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's clock of another process: CPUCLOCK_SCHED


def memory_mib(pid: int, kind: str) -> float:
    """Return memory of a process: `Rss`, or `Pss`, where what several share is counted once in all."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1024


def asked(log: Path) -> int:
    """Return how many completions the server was asked for, by its own access lines."""
    return log.read_text(errors="replace").count('"POST /')


@dataclass(frozen=True)
class Cost:
    """What one server's watching cost in the window."""

    percent: float
    rss_mib: float
    pss_mib: float
    tokens_per_minute: float


def observe(servers: Sequence[Watched], window_s: float) -> list[Cost]:
    """Watch the watching for the window."""
    time.sleep(SETTLED_S)
    began_s = time.monotonic()
    before = [([busy_s(pid) for pid in one.pids], asked(one.log)) for one in servers]
    time.sleep(window_s)
    span_s = time.monotonic() - began_s
    costs = []
    for one, (busy, tokens) in zip(servers, before, strict=True):
        used = [busy_s(pid) - was for pid, was in zip(one.pids, busy, strict=True)]
        costs.append(
            Cost(
                percent=100 * sum(used) / span_s,
                rss_mib=sum(memory_mib(pid, "Rss") for pid in one.pids),
                pss_mib=sum(memory_mib(pid, "Pss") for pid in one.pids),
                tokens_per_minute=60 * (asked(one.log) - tokens) / span_s,
            )
        )
    return costs


def measure(folder: Path, window_s: float) -> Iterator[Figure]:
    """Yield the figures of watching: one server without a client, one with traffic of others."""
    quiet = fake("vllm", free_port(), folder / "mark-quiet", *START, "--workers", "4")
    loaded = fake("sglang", free_port(), folder / "mark-loaded", *START, "--workers", "8", "--enable-metrics", *TRAFFIC)
    servers = [begin(folder, "watched-quiet", quiet), begin(folder, "watched-loaded", loaded)]
    try:
        idle, busy = observe(servers, window_s)
    finally:
        for one in servers:
            one.end()
    window = f"over {window_s:.0f} s, launcher included"
    yield Figure("watching a ready server without traffic", "% of a core", (idle.percent,), CORE_PERCENT, note=window)
    yield Figure("watching a ready server under traffic", "% of a core", (busy.percent,), CORE_PERCENT, note=window)
    worst_rss, worst_pss = max(idle.rss_mib, busy.rss_mib), max(idle.pss_mib, busy.pss_mib)
    yield Figure("memory of vigil and launcher (RSS)", "MiB", (worst_rss,), MEMORY_MIB, note="the larger of the two")
    yield Figure("the same, shared pages counted once (PSS)", "MiB", (worst_pss,), MEMORY_MIB)
    tokens = (idle.tokens_per_minute, busy.tokens_per_minute)
    yield Figure("tokens asked of a server without traffic", "a minute", tokens[:1], TOKENS_PER_MINUTE)
    yield Figure("tokens asked of a server under traffic", "a minute", tokens[1:], 0.0)
