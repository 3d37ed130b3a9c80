"""`make faults`: play every row of the fault table with the real command line, print the table, keep it as JSON.

    python bench/faults.py                                       # twenty passes at a tenth of life's times, then one in real time
    python bench/faults.py --scale 0.1 --where both --passes 1
    python bench/faults.py --scale 1 --only 'stuck|cut' --keep-traces

`--scale` multiplies the policy's times and the fakes' alike. Exit code 1 where a row was not as expected. $FAULTS_SOURCE: another
folder to take `vigil` from (a snapshot, while the tree is being edited).
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "faults"), str(HERE.parent / "tests")]

from rows import BOTH, LOCAL, ROWS, SSH, Row  # noqa: E402 - needs the path above

from fault_acts import ACTS  # noqa: E402
from fault_checks import CHECKS  # noqa: E402
from fault_report import head, keep_trace, lines, write  # noqa: E402
from fault_run import SOURCE, VIGIL, Outcome, Run  # noqa: E402

LIFE = 1.0
WAITS_S = 300.0  # rows that may take this long sleep for nearly all of it
LONG_FIRST_S = 100.0
APART_S = 1.5


def main() -> int:
    """Play the rows asked for, as often as asked for, and report."""
    options = read_options()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # started with `&` we would hand down that it is ignored
    if options.list:
        for row, where in chosen(options):
            print(f"{row.group:28} {row.name:44} {where:5} {' '.join(row.expect)}")
        return 0
    warm_up()
    if options.scale is not None:
        return play_passes(options, options.scale, options.passes)
    wrong = play_passes(options, 0.1, options.passes)
    return play_passes(options, LIFE, 1) or wrong


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Play the fault table.")
    add = parser.add_argument
    add("--where", choices=(LOCAL, SSH, "both"), default="both")
    add("--scale", type=float, help="factor of all times, 1 is real time (default: the passes at 0.1, then one at 1)")
    add("--passes", type=int, default=20)
    add("--only", default="", metavar="PATTERN", help="rows whose group/name matches this regular expression")
    add("--jobs", type=int, default=0, help="rows played at once (default: 2, in real time 10)")
    add("--waiting", type=int, default=8, help="rows played beside them that do nothing but wait")
    add("--keep-traces", action="store_true", help="keep the traces in tests/traces/")
    add("--write", action="store_true", help="write the JSON even for a part of the rows")
    add("--list", action="store_true", help="print the rows and play nothing")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[tuple[Row, str]]:
    """Return the rows that match and where each is to be played, the long ones first so that they overlap with the rest."""
    rows = [row for row in ROWS if re.search(options.only, f"{row.group}/{row.name}")]
    rows.sort(key=lambda row: -row.limit_s if row.limit_s > LONG_FIRST_S else 0)
    places = BOTH if options.where == "both" else (options.where,)
    return [(row, where) for row in rows for where in places if where in row.where]


def warm_up() -> None:
    """Compile what is about to be timed."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    subprocess.run([*VIGIL, "--help"], env=env, check=True, stdout=subprocess.DEVNULL)


def play_passes(options: argparse.Namespace, scale: float, passes: int) -> int:
    """Play passes at one scale; the figures are kept after each, so that an end before the last leaves honest ones."""
    outcomes: list[Outcome] = []
    took_s: list[float] = []
    for number in range(1, passes + 1):
        print(f"pass {number} of {passes}, scale {scale:g}\n{head()}", flush=True)
        began_s = time.monotonic()
        outcomes += play_pass(options, scale)
        took_s.append(time.monotonic() - began_s)
        wrong = sum(bool(outcome.problems) for outcome in outcomes)
        print(f"pass {number}: {took_s[-1]:.0f} s; so far {len(outcomes) - wrong} of {len(outcomes)} as expected")
        if not options.only or options.write:
            write(outcomes, scale=scale, passes=number, pass_took_s=took_s)
    return 1 if any(outcome.problems for outcome in outcomes) else 0


def play_pass(options: argparse.Namespace, scale: float) -> list[Outcome]:
    """Play each row once in each place. Rows that only wait do not hold the others up."""
    jobs = options.jobs or (10 if scale >= LIFE else 2)
    outcomes = []
    turn = threading.Lock()
    with ThreadPoolExecutor(options.waiting) as waiting, ThreadPoolExecutor(jobs) as busy:
        futures: list[Future[Outcome]] = []
        for row, where in chosen(options):
            keep = keep_trace if options.keep_traces else None
            run = Run(row, where, scale, keep=keep)
            if row.limit_s >= WAITS_S:
                futures.append(waiting.submit(play_in_turn, turn, run))
            else:
                futures.append(busy.submit(run.play, ACTS, CHECKS))
        for future in as_completed(futures):
            outcomes.append(future.result())
            print("\n".join(lines(outcomes[-1])), flush=True)
    return outcomes


def play_in_turn(turn: threading.Lock, run: Run) -> Outcome:
    """Play a row that waits, but do not begin with all of them at once: their starts would be what is measured."""
    with turn:
        time.sleep(APART_S)
    return run.play(ACTS, CHECKS)


if __name__ == "__main__":
    sys.exit(main())
