"""`make faults`: play every row of the fault table with the real command line, print the table, keep it as JSON.

    python bench/faults.py --scale 0.1 --where both --passes 20 --jobs 2
    python bench/faults.py --scale 1 --only 'stuck|cut' --keep-traces

`--scale` multiplies the policy's times and the fakes' alike. Exit code 1 where a row was not as expected. $FAULTS_SOURCE: another
folder to take `vigil` from (a snapshot, while the tree is being edited).
"""

import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "faults"), str(HERE.parent / "tests")]

from rows import BOTH, LOCAL, ROWS, SSH, Row  # noqa: E402 - needs the path above

from fault_acts import ACTS  # noqa: E402
from fault_checks import CHECKS  # noqa: E402
from fault_run import ROOT, SOURCE, VIGIL, Outcome, Run  # noqa: E402

RESULTS = ROOT / "docs" / "results" / "faults.json"
TRACES = ROOT / "tests" / "traces"
LINE = "{mark} {group:28.28} {name:40.40} {where:5} {expected:24.24} {said:24.24} {cause:9} {delay:>9} {took:>8}"


def main() -> int:
    """Play the rows asked for and report."""
    options = read_options()
    jobs = [
        (row, where)
        for _ in range(options.passes)
        for row in chosen(options.only)
        for where in places(row, options.where)
    ]
    if options.list:
        print("\n".join(f"{row.group:28} {row.name:40} {where}" for row, where in jobs))
        return 0
    subprocess.run(
        [*VIGIL, "--help"], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=True, stdout=subprocess.DEVNULL
    )
    head = LINE.format(
        mark=" ",
        group="group",
        name="fault",
        where="where",
        expected="expected",
        said="verdict",
        cause="cause",
        delay="after (s)",
        took="took (s)",
    )
    print(head, flush=True)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        keep = TRACES if options.keep_traces else None
        futures = [pool.submit(Run(row, where, options.scale, keep=keep).play, ACTS, CHECKS) for row, where in jobs]
        for future in as_completed(futures):
            outcome = future.result()
            outcomes.append(outcome)
            show(outcome)
    wrong = [outcome for outcome in outcomes if outcome.problems]
    print(
        f"{len(outcomes) - len(wrong)} of {len(outcomes)} rows as expected (scale {options.scale:g}, {options.passes} passes)"
    )
    if not options.only or options.write:
        write(outcomes, options)
    return 1 if wrong else 0


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Play the fault table.")
    parser.add_argument("--where", choices=(LOCAL, SSH, "both"), default="both")
    parser.add_argument("--scale", type=float, default=0.1, help="factor of all times (1: real time)")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="rows whose group or name matches this regular expression"
    )
    parser.add_argument("--jobs", type=int, default=2, help="rows played at once")
    parser.add_argument("--keep-traces", action="store_true", help="copy the traces to tests/traces/")
    parser.add_argument("--write", action="store_true", help="write the JSON even for a part of the rows")
    parser.add_argument("--list", action="store_true", help="print the rows and play nothing")
    return parser.parse_args()


def chosen(pattern: str) -> list[Row]:
    """Return the rows that match, the long ones first so that they overlap with the rest."""
    rows = [row for row in ROWS if re.search(pattern, f"{row.group}/{row.name}")]
    return sorted(rows, key=lambda row: -row.limit_s)


def places(row: Row, where: str) -> tuple[str, ...]:
    """Return where a row is to be played."""
    return tuple(place for place in row.where if where in (place, "both") and place in BOTH)


def show(outcome: Outcome) -> None:
    """Print one line of the table, and what was wrong below it."""
    row = outcome.row
    print(
        LINE.format(
            mark="ok " if not outcome.problems else "NOT", group=row.group, name=row.name, where=outcome.where,
            expected=" ".join(row.expect), said=" ".join(outcome.said), cause=outcome.cause or "-",
            delay="-" if outcome.delay_s is None else f"{outcome.delay_s:.3f}",
            took=f"{outcome.took_s:.1f}",
        ),
        flush=True,
    )  # fmt: skip
    for problem in outcome.problems:
        print(f"      {problem}", flush=True)


def write(outcomes: list[Outcome], options: argparse.Namespace) -> None:
    """Keep the table as JSON with the machine and the date, one entry for each scale."""
    kept: dict[str, Any] = {}
    if RESULTS.exists():
        kept = json.loads(RESULTS.read_text())
    kept[f"scale {options.scale:g}"] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
        "passes": options.passes,
        "rows": [
            as_entry(outcome) for outcome in sorted(outcomes, key=lambda one: (one.row.group, one.row.name, one.where))
        ],
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def as_entry(outcome: Outcome) -> dict[str, Any]:
    """Return one outcome for the JSON."""
    row = outcome.row
    return {
        "group": row.group, "fault": row.name, "where": outcome.where, "expected": list(row.expect),
        "verdict": list(outcome.said),
        "cause": outcome.cause, "from": row.mark, "after_s": outcome.delay_s, "took_s": outcome.took_s,
        "ok": not outcome.problems, "problems": list(outcome.problems),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
