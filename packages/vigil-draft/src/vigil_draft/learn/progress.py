"""What a training says while it goes on: one line each ten seconds, and the same as JSON lines beside the draft."""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from vigil.screen import duration
from vigil_draft.learn.record import FILE

if TYPE_CHECKING:
    from vigil_draft.learn.step import Tally
    from vigil_draft.learn.train import Training

LINE_EVERY_S = 10.0
SHORT_CHAIN = 3
"""The acceptance length is told for this k, which servers mostly run with, beside that of the whole chain."""


class Lines:
    """The progress line and the record (both by the first process). Invariant: `tally` holds the steps since the last line."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.tally: Tally | None = None
        self.steps, self.since = 0, time.monotonic()
        self.last: dict[str, Any] = {}
        self.live = sys.stderr.isatty()

    def say(self, text: str, *, over: bool = False) -> None:
        """Print a line, once for all processes. `over`: on a terminal, the next line of progress is written over it."""
        if self.training.rank:
            return
        begin = "\r\x1b[2K" if self.live else ""
        shown = text[: shutil.get_terminal_size().columns - 1] if self.live and over else text
        print(begin + shown, end="" if self.live and over else "\n", file=sys.stderr, flush=True)

    def add(self, tally: Tally) -> None:
        """Count a step; print where the time has come."""
        self.tally = tally if self.tally is None else self.tally + tally
        self.steps += 1
        if time.monotonic() - self.since >= LINE_EVERY_S:
            self.write()

    def end(self) -> dict[str, Any]:
        """Print and record what is left; return the last line of the record."""
        self.write()
        if self.live and self.last:
            self.say(told(self.last))
        return self.last

    def write(self) -> None:
        """Print and record the steps since the last line."""
        if self.tally is None:
            return
        now = time.monotonic()
        self.last = self._record(self.tally, now)
        if not self.training.rank:
            with (self.training.out / FILE).open("a") as file:
                file.write(json.dumps(self.last) + "\n")
        self.say(told(self.last), over=True)
        self.tally, self.steps, self.since = None, 0, now

    def _record(self, tally: Tally, now: float) -> dict[str, Any]:
        training, joint = self.training, tally.joint
        each_s = (now - self.since) / self.steps
        of, left_s = training.foreseen(each_s)
        accuracy = [float(each) for each in tally.right / tally.guesses.clamp(min=1)]
        on_gpu = training.device.type == "cuda"
        return {
            "step": training.step,
            "of": of,
            "seconds": round(now - training.began, 1),
            "left_s": round(left_s, 1),
            "tokens": training.step * training.plan.tokens_of_a_step,
            "tokens_per_s": round(training.plan.tokens_of_a_step / each_s),
            "loss": round(float(tally.loss.sum()) / self.steps, 4),
            "accuracy": [round(each, 4) for each in accuracy],
            "joint": [round(each, 4) for each in joint],
            "acceptance_length_k3": round(1 + sum(joint[:SHORT_CHAIN]), 3) if len(joint) >= SHORT_CHAIN else None,
            "acceptance_length": round(1 + sum(joint), 3),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if on_gpu else None,
        }


def told(record: dict[str, Any]) -> str:
    """Return a line of the record for people; `vigil run` reads how far it is (vigil/engines/generic.py)."""
    accuracy, short, k = record["accuracy"], record["acceptance_length_k3"], len(record["joint"])
    lengths = [f"{short:.2f} (k {SHORT_CHAIN})"] if short is not None and k > SHORT_CHAIN else []
    lengths.append(f"{record['acceptance_length']:.2f} (k {k})")
    return (
        f"step {record['step']}/{record['of']}  {record['tokens_per_s']} tokens/s  loss {record['loss']:.3f}"
        f"  accuracy {' '.join(f'{each:.3f}' for each in accuracy)}  acceptance length {', '.join(lengths)}"
        f"  {duration(record['left_s'])} left"
    )
