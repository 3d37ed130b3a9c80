"""`make story`: the chain from a target to a server whose speculation pays, end to end, unattended, on this machine's CPU.

Extract, train, evaluate, convert; the wrong flag, refused; a patched file that nothing loads, seen; up, ready by a token, its
acceptance against the promise; throughput without speculation, with it, and switched by the load; a crash loop named with its
cause. Ends with `.story/report.md`, a page of what was promised and what was measured. Interrupted, it goes on after the last
finished step; `--fresh` begins anew. Exit 1 where a promise was broken.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import drafting
import serving
from place import Place
from telling import Step, load, page, save

ROOT = Path(__file__).parents[2]
STEPS: dict[str, Callable[[Place], Step]] = {
    "answers": drafting.answers,
    "states": drafting.states,
    "training": drafting.training,
    "promise": drafting.promise,
    "formats": drafting.formats,
    "wrong-flag": serving.wrong_flag,
    "patched": serving.patched,
    "kept-promise": drafting.kept_promise,
    "load": serving.load,
    "crash-loop": serving.crash_loop,
}


def main() -> int:
    """Tell the story; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    parser.add_argument("--work", type=Path, default=ROOT / ".story", help="where everything lands")
    parser.add_argument("--minutes", type=float, default=2.0, help="of training")
    parser.add_argument("--only", nargs="*", metavar="STEP", help=f"these steps alone: {', '.join(STEPS)}")
    asked = parser.parse_args()
    if asked.fresh:
        shutil.rmtree(asked.work, ignore_errors=True)
    kept = asked.work / "steps"
    kept.mkdir(parents=True, exist_ok=True)
    place = Place(root=ROOT, work=asked.work.resolve(), minutes=asked.minutes, port=free_port())
    told: list[Step] = []
    for name, tell in STEPS.items():
        step = load(name, kept)
        left_out = asked.only and name not in asked.only
        if left_out and step is None:
            continue
        if step is None:
            began = time.monotonic()
            step = tell(place)
            step.seconds = round(time.monotonic() - began, 1)
            save(step, kept)
        print_step(step)
        told.append(step)
        picture = "load.svg" if (asked.work / "load.svg").is_file() else None
        (asked.work / "report.md").write_text(page(told, about(place), picture))
    broken = [row for step in told for row in step.broken]
    print(f"\n{len(broken)} promises were broken; the page: {asked.work / 'report.md'}")
    return 1 if broken else 0


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def about(place: Place) -> dict[str, str]:
    """Return where the story was told: versions and machine."""
    ask = "from importlib.metadata import version; print(version('vllm'))"
    asked = {
        "vigil": [str(ROOT / ".venv" / "bin" / "vigil"), "--version"],
        "vLLM": [str(place.vllm / "bin" / "python"), "-c", ask],
    }
    told = {
        name: subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        for name, command in asked.items()
    }
    found = {name: words[-1] if words else "?" for name, words in told.items()}
    return {**found, "target": place.target.name, "on": f"{os.cpu_count()} CPUs"}


def print_step(step: Step) -> None:
    """Print what a step found."""
    print(f"\n── {step.title} ({step.seconds:.0f} s)", flush=True)
    for row in step.rows:
        mark = {True: "kept  ", False: "BROKEN", None: "      "}[row.kept]
        promised = f"   promised: {row.promised}" if row.promised else ""
        print(f"   {mark}  {row.subject}: {row.measured}{promised}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
