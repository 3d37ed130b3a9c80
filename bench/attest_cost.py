"""What the attester costs a server: start-up and token rate with it and without it, in turn, in one run.

    .venv/bin/python bench/attest_cost.py                      # interpreters and imports only, seconds
    .venv/bin/python bench/attest_cost.py --engine vllm        # and a real vLLM on the CPU, minutes

Prints JSON: seconds and tokens a second, medians, and the ratios of "with" to "without".
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
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vigil.attest import attester_texts
from vigil.observer.attesters import ask

ROOT = Path(__file__).resolve().parents[1]
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
PORT = 18431
BARE_TIMES, IMPORT_TIMES, ANSWERS, TOKENS = 40, 3, 6, 96
STARTS = 3  # of each kind, in turn: two starts of one server differ by several per cent on a small machine
EVERYTHING = {
    "packages": ["vllm", "torch", "transformers"],
    "arguments": ["VllmConfig"],
    "classes": ["EngineCoreProc", "NoSuchClass"],
}


def prepared(folder: Path) -> dict[str, str]:
    """Put the attester into a folder as the launcher does; return the variables that lead to it."""
    home, sockets = folder / "home", folder / "sockets"
    for one in (home, sockets):
        one.mkdir(mode=0o700)
    for name, text in attester_texts().items():
        (home / name).write_text(text)
    return {"PYTHONPATH": str(home), "VIGIL_ATTEST": str(sockets), "VIGIL_ATTEST_OF": "vllm,sglang,sgl_kernel"}


def in_turn(times: int, run: Callable[[dict[str, str]], None], env: dict[str, str]) -> dict[str, float]:
    """Run without and with, in turn; return both medians (seconds) and their ratio."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIGIL"))}
    took: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(2 * times):
        which = ("without", "with")[(turn + turn // 2) % 2]
        began_s = time.perf_counter()
        run({**plain, **(env if which == "with" else {})})
        took[which].append(time.perf_counter() - began_s)
    found = {f"{which}_s": round(statistics.median(values), 4) for which, values in took.items()}
    return {**found, "ratio": round(found["with_s"] / found["without_s"], 3)}


def python(program: str, code: str, cwd: str) -> Callable[[dict[str, str]], None]:
    def run(env: dict[str, str]) -> None:
        subprocess.run([program, "-c", code], env=env, cwd=cwd, check=True, capture_output=True)

    return run


def rates(model: str, between: Callable[[], object] = lambda: None) -> dict[str, float]:
    """Return tokens a second, medians of answers in turn: those before which `between` was called, and the others."""
    found: dict[str, list[float]] = {"tokens_per_s": [], "tokens_per_s_after_asking": []}
    for turn in range(2 * ANSWERS):
        which = list(found)[(turn + turn // 2) % 2]
        if which != "tokens_per_s":
            between()
        body = {
            "model": model,
            "prompt": "Once upon a time",
            "max_tokens": TOKENS,
            "ignore_eos": True,
            "temperature": 0,
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        began_s = time.perf_counter()
        with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310 - our own server
            tokens = json.load(reply)["usage"]["completion_tokens"]
        found[which].append(tokens / (time.perf_counter() - began_s))
    return {which: round(statistics.median(values), 2) for which, values in found.items()}


def server(folder: Path, *, attested: bool) -> dict[str, Any]:
    """Start vLLM by vigil, with the attester or without; return when it was ready and how fast it answers."""
    name, model = f"cost{int(attested)}", str(ENGINES / "models" / "SmolLM2-135M-Instruct")
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    vigil = [sys.executable, "-m", "vigil"]
    flags = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "4")
    command = [str(ENGINES / "vllm" / "bin" / "vllm"), "serve", model, *flags, "--port", str(PORT)]
    options = ["--env", "HF_HUB_OFFLINE=1", "--env", "VLLM_CPU_KVCACHE_SPACE=1", *([] if attested else ["--no-attest"])]
    up = subprocess.run(
        [*vigil, "up", "--json", "--name", name, *options, "--", *command],
        env=env,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    verdict = json.loads(up.stdout)
    try:
        sockets = folder / "state/vigil/servers" / name / "current/attest"
        asking = (lambda: ask(str(sockets), EVERYTHING)) if attested else (list)
        found: dict[str, Any] = {"ready_s": verdict["attempts"][0]["ready_s"], **rates(model, asking)}
        if attested:
            found["answer_took_s"] = [one.told.get("took_s") for one in ask(str(sockets), EVERYTHING)]
        return found
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run([*vigil, "stop", name], env=env, cwd=folder, capture_output=True, check=False, timeout=120)


def servers(folder: Path) -> dict[str, Any]:
    """Start vLLM without and with the attester, in turn; return what each start gave, the medians of both and their ratio."""
    found: dict[str, list[dict[str, Any]]] = {"without": [], "with": []}
    for turn in range(2 * STARTS):
        which = ("without", "with")[(turn + turn // 2) % 2]
        found[which].append(server(folder, attested=which == "with"))
    medians = {
        f"{what} {which}": round(statistics.median(one[what] for one in starts), 2)
        for what in ("ready_s", "tokens_per_s", "tokens_per_s_after_asking")
        for which, starts in found.items()
    }
    ratio = round(medians["tokens_per_s with"] / medians["tokens_per_s without"], 3)
    return {**found, **medians, "tokens_per_s ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("vllm",))
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        env = prepared(Path(folder))
        (Path(folder) / "cwd").mkdir()
        cwd = str(Path(folder) / "cwd")
        found["bare interpreter"] = in_turn(BARE_TIMES, python(sys.executable, "pass", cwd), env)
        program = ENGINES / "vllm" / "bin" / "python"
        if program.exists():
            found["import vllm, torch and transformers"] = in_turn(
                IMPORT_TIMES, python(str(program), "import vllm, torch, transformers, vllm.config", cwd), env
            )
        if asked.engine:
            found["vllm"] = servers(Path(folder))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
