"""The load generators measured beside vigil: how each is asked for the same, and its figures under one set of names.

vLLM's and SGLang's own come with their engines (`make engines`), the others with bench/peers/install-generators.sh. All get
prompts of the same making, each time others, so that no cache of the server knows them; all send `requests` of them with `opened`
open, from first to last, and no warm-up of their own, which would be one more prompt that the server has seen.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from vigil.bench.prompts import made

ROOT = Path(__file__).parents[1]
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
GENERATORS = Path(os.environ.get("VIGIL_PEERS") or ROOT / ".peers") / "generators"
TOKENIZER = ENGINES / "models" / "SmolLM2-135M-Instruct"
INPUT_WORDS, OUTPUT = 48, 64
LIMIT_S = 240
FIGURES = (
    "output_throughput", "request_throughput", "mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms",
    "median_itl_ms", "mean_e2el_ms",
)  # fmt: skip
"""What is compared, by vLLM's names."""


class Job(NamedTuple):
    """What every tool is asked for. `seed`: of the prompts."""

    url: str
    model: str
    opened: int
    requests: int
    seed: int
    output: int = OUTPUT
    processes: int = 1

    def prompts(self) -> list[str]:
        """Return the prompts."""
        return [made(self.seed, number, INPUT_WORDS) for number in range(self.requests)]

    def write(self, path: Path, shape: Callable[[str], dict[str, Any]]) -> Path:
        """Write the prompts, one object a line."""
        path.write_text("".join(json.dumps(shape(one)) + "\n" for one in self.prompts()))
        return path


class Tool(NamedTuple):
    """One of them. `measure` returns its figures; `program` is there where it is installed."""

    name: str
    measure: Callable[[Job, Path], dict[str, Any]]
    program: Path


def with_vigil(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with ours."""
    file = job.write(folder / "prompts.jsonl", lambda text: {"prompt": text})
    with file.open("a") as more:  # it asks the longest one beforehand, to see whether it fits: one that is not measured
        more.write(json.dumps({"prompt": made(job.seed, job.requests, 2 * INPUT_WORDS)}) + "\n")
    words = ["bench", job.url, "--model", job.model, "--concurrency", str(job.opened), "--requests", str(job.requests)]
    words += ["--prompts", str(file), "--repeats", "1", "--output", str(job.output), "--processes", str(job.processes)]
    run([sys.executable, "-m", "vigil", *words, "--out", str(folder / "ours")], folder, PYTHONPATH=str(OURS))
    return figures_of(next((folder / "ours").glob("serve-*.json")))


def with_vllm(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with vLLM's."""
    file = job.write(folder / "prompts.jsonl", lambda text: {"prompt": text})
    words = ["--backend", "openai", "--base-url", job.url, "--model", job.model, "--tokenizer", str(TOKENIZER)]
    words += ["--dataset-name", "custom", "--dataset-path", str(file), "--skip-chat-template", "--disable-shuffle"]
    words += [
        "--custom-output-len",
        str(job.output),
        "--ignore-eos",
        "--temperature",
        "0",
        "--ready-check-timeout-sec",
        "0",
    ]
    words += ["--num-prompts", str(job.requests), "--max-concurrency", str(job.opened), "--num-warmups", "0"]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el"]
    kept = ["--save-result", "--result-dir", str(folder), "--result-filename", "v.json"]
    run([str(VLLM), "bench", "serve", *words, *kept], folder, HF_HUB_OFFLINE="1", PYTHONPATH=str(EXTRA))
    return figures_of(folder / "v.json")


def with_sglang(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with SGLang's."""
    file = job.write(
        folder / "prompts.jsonl", lambda text: {"conversations": [{"content": text}, {"content": "one two three four"}]}
    )
    words = ["--backend", "vllm", "--base-url", job.url, "--model", job.model, "--tokenizer", str(TOKENIZER)]
    words += ["--dataset-name", "custom", "--dataset-path", str(file), "--sharegpt-output-len", str(job.output)]
    words += ["--num-prompts", str(job.requests), "--max-concurrency", str(job.opened), "--warmup-requests", "0"]
    command = [
        str(SGLANG),
        "-W",
        "ignore",
        "-m",
        "sglang.bench_serving",
        *words,
        "--output-file",
        str(folder / "s.jsonl"),
    ]
    run(command, folder, HF_HUB_OFFLINE="1", PYTHONPATH=str(EXTRA))
    found = figures_of(folder / "s.jsonl")
    return {**found, "mean_e2el_ms": found.get("mean_e2e_latency_ms")}


def with_aiperf(job: Job, folder: Path) -> dict[str, Any]:
    """Measure with NVIDIA's AIPerf."""
    file = job.write(folder / "prompts.jsonl", lambda text: {"text": text, "output_length": job.output})
    words = ["--url", job.url, "--model", job.model, "--tokenizer", str(TOKENIZER), "--endpoint-type", "completions"]
    words += ["--streaming", "--use-server-token-count", "--use-legacy-max-tokens", "--ui", "none", "--no-auto-plot"]
    words += [
        "--input-file",
        str(file),
        "--custom-dataset-type",
        "single_turn",
        "--dataset-sampling-strategy",
        "sequential",
    ]
    words += [
        "--extra-inputs",
        "ignore_eos:true",
        "--extra-inputs",
        "temperature:0",
        "--artifact-dir",
        str(folder / "a"),
    ]
    words += ["--extra-inputs", f"max_tokens:{job.output}"]
    words += ["--request-count", str(job.requests), "--concurrency", str(job.opened)]
    run([str(AIPERF), "profile", *words], folder)
    found = figures_of(folder / "a" / "profile_export_aiperf.json")
    names = {
        "ttft": "time_to_first_token",
        "tpot": "inter_token_latency",
        "itl": "inter_chunk_latency",
        "e2el": "request_latency",
    }
    means = {f"mean_{short}_ms": found[name]["avg"] for short, name in names.items()}
    medians = {f"median_{short}_ms": found[name]["p50"] for short, name in names.items()}
    rates = {
        name: found[of]["avg"]
        for name, of in (("output_throughput", "output_token_throughput"), ("request_throughput",) * 2)
    }
    return {**means, **medians, **rates, "completed": found["request_count"]["avg"]}


OURS = ROOT / "packages" / "vigil" / "src"
VLLM = ENGINES / "vllm" / "bin" / "vllm"
SGLANG = ENGINES / "sglang" / "bin" / "python"
EXTRA = GENERATORS / "engine-extra"  # what the benchmarks of vLLM and SGLang import and their engines lack
AIPERF = GENERATORS / "aiperf" / "bin" / "aiperf"
TOOLS = (
    Tool("vigil", with_vigil, Path(sys.executable)),
    Tool("vllm bench serve", with_vllm, VLLM),
    Tool("sglang.bench_serving", with_sglang, SGLANG),
    Tool("aiperf", with_aiperf, AIPERF),
)


def run(words: list[str], folder: Path, **env: str) -> None:
    """Run a tool in its folder; raise with its last words where it fails."""
    told = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "HF_HUB_OFFLINE"}}
    told |= {"XDG_STATE_HOME": str(folder), "HF_HUB_DISABLE_TELEMETRY": "1", **env}
    try:
        done = subprocess.run(words, cwd=folder, env=told, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"it did not end within {LIMIT_S} s") from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["without a word"]
        reason = next((line for line in reversed(lines) if "error" in line.lower()), lines[-1])
        raise RuntimeError(f"it ended with {done.returncode}: {reason.strip()[:300]}")


def figures_of(path: Path) -> dict[str, Any]:
    """Return the object of a file, or its last line's."""
    text = path.read_text("utf-8").strip()
    try:
        whole: dict[str, Any] = json.loads(text)
    except ValueError:
        last: dict[str, Any] = json.loads(text.splitlines()[-1])
        return last
    return whole
