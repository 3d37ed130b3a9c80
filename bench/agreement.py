"""Measure one server with `vigil bench`, `vllm bench serve` and `sglang.bench_serving` in turn, and say how far they agree.

    make engines; .venv/bin/python bench/agreement.py [--rounds N] [--url http://HOST:PORT --model M --tokenizer FOLDER]

Without `--url` the server is tests/fakes/stream.py at a known pace, since a client, not a model, is compared. All send as many
requests of the same lengths with the same number open, from first to last; rounds are interleaved. Kept in
docs/results/agreement.json: medians, and *off* as the share by which vigil differs. A tool that is not installed is left out.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench_figures import load, machine
from client_ceiling import fake

ROOT = Path(__file__).parents[1]
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
TOKENIZER = ENGINES / "models" / "SmolLM2-135M-Instruct"
INPUT, OUTPUT = 32, 64
PACE = ("--step", "0.02", "--step-each", "0.0005", "--first", "0.01")
FIGURES = (
    "output_throughput", "request_throughput", "mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms",
    "median_itl_ms",
)  # fmt: skip
WANTED = 0.03
LIMIT_S = 300


class Job:
    """What every tool is asked for."""

    def __init__(self, url: str, model: str, tokenizer: str, opened: int, requests: int) -> None:
        self.url, self.model, self.tokenizer, self.opened, self.requests = url, model, tokenizer, opened, requests


def with_vigil(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with ours."""
    words = ["bench", job.url, "--model", job.model, "--concurrency", str(job.opened), "--requests", str(job.requests)]
    lengths = ["--repeats", "1", "--input", str(INPUT), "--output", str(OUTPUT), "--out", str(folder / "ours")]
    run([sys.executable, "-m", "vigil", *words, *lengths], folder)
    return read(next((folder / "ours").glob("serve-*.json")))


def with_vllm(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with vLLM's."""
    words = [
        "bench",
        "serve",
        "--backend",
        "openai",
        "--base-url",
        job.url,
        "--model",
        job.model,
        "--tokenizer",
        job.tokenizer,
    ]
    lengths = ["--dataset-name", "random", "--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT)]
    loads = [
        "--num-prompts",
        str(job.requests),
        "--max-concurrency",
        str(job.opened),
        "--ignore-eos",
        "--temperature",
        "0",
    ]
    kept = ["--save-result", "--result-dir", str(folder), "--result-filename", "v.json"]
    run([str(ENGINES / "vllm" / "bin" / "vllm"), *words, *lengths, *loads, *kept], folder)
    return read(folder / "v.json")


def with_sglang(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with SGLang's."""
    parts = urlsplit(job.url)
    words = [
        "-m",
        "sglang.bench_serving",
        "--backend",
        "vllm",
        "--host",
        str(parts.hostname),
        "--port",
        str(parts.port),
    ]
    names = [
        "--model",
        job.model,
        "--tokenizer",
        job.tokenizer,
        "--dataset-name",
        "random-ids",
        "--random-range-ratio",
        "1",
    ]
    lengths = ["--random-input-len", str(INPUT), "--random-output-len", str(OUTPUT), "--warmup-requests", "0"]
    loads = [
        "--num-prompts",
        str(job.requests),
        "--max-concurrency",
        str(job.opened),
        "--output-file",
        str(folder / "s.jsonl"),
    ]
    run([str(ENGINES / "sglang" / "bin" / "python"), *words, *names, *lengths, *loads], folder)
    return read(folder / "s.jsonl")


TOOLS: dict[str, tuple[Callable[[Job, Path], dict[str, Any]], Path]] = {
    "vigil": (with_vigil, Path(sys.executable)),
    "vllm bench serve": (with_vllm, ENGINES / "vllm" / "bin" / "vllm"),
    "sglang.bench_serving": (with_sglang, ENGINES / "sglang" / "bin" / "python"),
}


def run(words: list[str], folder: Path) -> None:
    """Run a tool in an empty folder; raise with its last words where it fails."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder), "PYTHONPATH": str(ROOT / "packages" / "vigil" / "src")}
    if "-m" not in words[1:2] or "vigil" not in words:
        env.pop("PYTHONPATH")
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:4])} ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")


def read(path: Path) -> dict[str, Any]:
    """Return the last object of a file."""
    text = path.read_text("utf-8").strip()
    with contextlib.suppress(ValueError):
        whole: dict[str, Any] = json.loads(text)
        return whole
    last: dict[str, Any] = json.loads(text.splitlines()[-1])
    return last


def measured(job: Job, tools: list[str], rounds: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure with each tool in turn, the other way round in every second round; return rows, and which tools failed and why."""
    seen: dict[str, list[dict[str, Any]]] = {}
    failed: dict[str, str] = {}
    for number in range(rounds):
        for tool in tools if number % 2 == 0 else reversed(tools):
            if tool in failed:
                continue
            try:
                with tempfile.TemporaryDirectory() as folder:
                    found = TOOLS[tool][0](job, Path(folder))
            except RuntimeError as error:
                failed[tool] = str(error).strip().splitlines()[-1]
                continue
            print(
                f"round {number + 1}: {job.opened} open: {tool}: {found['output_throughput']:.1f} tokens/s", flush=True
            )
            seen.setdefault(tool, []).append(found)
    return [row(figure, job.opened, seen) for figure in FIGURES], failed


def row(figure: str, opened: int, seen: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return one figure as each tool has it, and how far ours is off."""
    mid = {tool: statistics.median(one[figure] for one in some) for tool, some in seen.items()}
    off = {f"off, {tool}": mid["vigil"] / value - 1 for tool, value in mid.items() if tool != "vigil"}
    within = "yes" if off and all(abs(one) <= WANTED for one in off.values()) else "NO"
    shown = {name: f"{value:+.1%}" for name, value in off.items()}
    return {
        "figure": figure,
        "open": opened,
        **{tool: round(one, 2) for tool, one in mid.items()},
        **shown,
        "within 3 %": within,
    }


def main() -> None:
    """Measure, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url", help="a server that runs; else a fake at a known pace")
    parser.add_argument("--model", default="m")
    parser.add_argument("--tokenizer", default=str(TOKENIZER))
    parser.add_argument("--open", default="1,16")
    asked = parser.parse_args()
    tools = [tool for tool, (_, program) in TOOLS.items() if program.exists()]
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
        "machine": machine(),
        "load": load(),
        "server": asked.url or f"tests/fakes/stream.py {' '.join(PACE)}",
        "lengths": f"{INPUT} in, {OUTPUT} out",
        "rounds": asked.rounds,
        "left out": {tool: "it is not installed" for tool in TOOLS if tool not in tools},
        "rows": [],
    }
    with contextlib.ExitStack() as stack:
        url = asked.url or stack.enter_context(fake(*PACE))
        for opened in map(int, asked.open.split(",")):
            job = Job(url, asked.model, asked.tokenizer, opened, max(16, 10 * opened))
            rows, failed = measured(job, tools, asked.rounds)
            told["rows"] += rows
            tools = [tool for tool in tools if tool not in failed]
            told["left out"].update(failed)
    (ROOT / "docs" / "results" / "agreement.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told["rows"], indent=1))


if __name__ == "__main__":
    main()
