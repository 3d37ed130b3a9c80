"""Count the broken commands that are refused with the right correction, and the good ones that are not; time `vigil check`.

    python bench/check_score.py [--rounds 10]

The cases are those of tests/preflight/*.toml, each with its source. Times are of the whole command, in a process of its own:
*warm* where the engine's parser was read before and its answer is kept, *cold* with an empty state folder, *tables* where the
engine is not on this host. The figures are kept in docs/results/check.json, and shown in docs/check-lists.md.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from bench_figures import load, machine  # noqa: E402 - needs the path above
from preflight.examined import is_corrected, report  # noqa: E402 - needs the path above
from preflight.lists import Case, cases  # noqa: E402 - needs the path above

RESULTS = ROOT / "docs" / "results" / "check.json"
ENGINES = Path(os.environ.get("VIGIL_ENGINES") or ROOT / ".engines")
FIRST_STORY = "-m sglang.launch_server --model-path /m --num-speculative-tokens 16"


def judged(case: Case) -> dict[str, Any]:
    """Put one case through the checks; return what it is, what was said of it, and whether that is right."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        os.environ["XDG_STATE_HOME"] = str(here / "state")
        found = report(case, here)
        first = next((one for one in found.fatal if one.code == case.code), None) or next(iter(found.fatal), None)
        right = (case.code in {one.code for one in found.fatal}) if case.code else not found.fatal
        row = {
            "name": case.name,
            "source": case.source,
            "broken": bool(case.code),
            "refused": bool(found.fatal),
            "right": right and is_corrected(case, found, here),
            "code": first.code if first else "",
            "said": first.text if first else "",
            "corrected": shlex.join(found.corrected) if found.corrected and case.corrected else "",
            "command": shlex.join(case.words(here)),
        }
        return {name: one.replace(folder, "/models") if isinstance(one, str) else one for name, one in row.items()}


def timed(command: list[str], rounds: int, *, keep: bool) -> list[float]:
    """Run `vigil check` on a command; return the seconds of each round. `keep`: with the state of a first, uncounted one."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + keep):
            state = Path(folder) / ("state" if keep else f"state{number}")
            began_s = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "vigil", "check", "--", *command],
                env={**os.environ, "XDG_STATE_HOME": str(state)},
                capture_output=True,
                check=False,
            )
            seconds.append(time.perf_counter() - began_s)
    return seconds[1:] if keep else seconds


def times(rounds: int) -> list[dict[str, Any]]:
    """Measure the first story's command, whose flag does not exist: with the engine installed, and from the tables."""
    words = shlex.split(FIRST_STORY)
    found = []
    installed = ENGINES / "sglang" / "bin" / "python"
    ways = [
        ("tables, warm", ["python3-of-nobody", *words], True),
        ("tables, cold", ["python3-of-nobody", *words], False),
    ]
    if installed.exists():
        ways += [
            ("SGLang installed, warm", [str(installed), *words], True),
            ("SGLang installed, cold", [str(installed), *words], False),
        ]
    for what, command, keep in ways:
        seconds = timed(command, rounds, keep=keep)
        row = {"what": f"vigil check, {what}", "median_s": round(statistics.median(seconds), 3)}
        found.append({**row, "worst_s": round(max(seconds), 3), "n": len(seconds), "load": load()})
    return found


def main() -> None:
    """Judge, measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    rows = [judged(case) for case in cases()]
    broken, good = [one for one in rows if one["broken"]], [one for one in rows if not one["broken"]]
    summary = [
        {
            "list": "broken commands and folders",
            "cases": len(broken),
            "refused": sum(one["refused"] for one in broken),
            "for the right cause, with the right correction": sum(one["right"] for one in broken),
        },
        {"list": "good ones", "cases": len(good), "refused": sum(one["refused"] for one in good)},
    ]
    measured = times(rounds)
    for row in [*summary, *measured]:
        print("  ".join(f"{name}: {value}" for name, value in row.items()))
    for row in rows:
        if not row["right"]:
            print(f"not right: {row['name']}: {row['code']} {row['said']}")
    kept = {"date": time.strftime("%Y-%m-%d %H:%M:%S %z"), "machine": machine(), "lists": summary, "times": measured}
    RESULTS.write_text(json.dumps({**kept, "cases": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
