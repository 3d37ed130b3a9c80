"""A fake long job (training, extraction): steps with a loss, then an end. Standard library only."""

import argparse
import pathlib
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from options import seconds
from styles import STYLES
from talk import Talk
from workers import Workers

from faults import Deaths, Marks


def main() -> None:
    """Work through the steps; die or stop making progress at the step asked for."""
    options = read_options()
    workers = Workers(("pt_data_worker",), options.workers)
    talk = Talk(STYLES["generic"], options)
    marks = Marks(options.mark)
    for step in range(options.steps):
        if options.at_step == step and options.die:
            Deaths(options, talk, workers, marks).die(options.die)
        if options.at_step == step and options.stick:
            marks.note("FAULT", "stick sleep")
            time.sleep(86400)
        time.sleep(options.step_time * options.scale)
        talk.line(f"epoch 0 step {step + 1}/{options.steps} loss {2.5 / (step + 1):.4f} lr 1.0e-04")
    talk.line("saved checkpoint, training finished")
    workers.kill_all()
    marks.note("FAULT", "finished")
    sys.exit(0)


def read_options() -> Any:
    """Read the flags; durations are scaled by --scale."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--step-time", type=seconds, default=0.2)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--die", default="", help="as server.py's --die")
    parser.add_argument("--stick", action="store_true", help="no progress from that step on")
    parser.add_argument("--at-step", type=int, default=-1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--mark", default="")
    quiet = {"served": "job", "draft": "", "host": "", "port": 0, "log_file": "", "log_late": 0.0, "orphans": False}
    return parser.parse_args(namespace=argparse.Namespace(**quiet))


if __name__ == "__main__":
    main()
