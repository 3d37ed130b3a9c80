"""What a training will take in time, disk and memory: said before the hours begin. Pure, but for the clock's words; no torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigil.errors import UsageError
from vigil.screen import duration, size

if TYPE_CHECKING:
    from vigil_draft.learn.order import Plan

SPARE_BYTES = 16 << 20
"""For the record, the card and the config."""
WATCHED = 4
"""Real steps by which the time is estimated; the first of them warms up and does not count."""
HALF_A_DAY_S = 43200


@dataclass(frozen=True, kw_only=True)
class Disk:
    """Bytes of the two files that a training keeps. Each is written beside the one before, and renamed."""

    checkpoint: int
    draft: int

    @property
    def most(self) -> int:
        """Bytes at the fullest moment: both, and a checkpoint that is being written."""
        return 2 * self.checkpoint + self.draft

    def needed(self, there: int) -> int:
        """Return the bytes that must be free where these files have so many bytes already."""
        return max(0, self.most - there) + SPARE_BYTES


def disk_of(numbers: int, words: int, whole: int) -> Disk:
    """Return the files of a draft of so many numbers: fp32 with two moments each, bf16; its words, and the target's."""
    return Disk(checkpoint=12 * numbers + 8 * words, draft=2 * numbers + 8 * words + whole)


def refuse_small_disk(out: str, disk: Disk, there: int, free: int) -> None:
    """Go on where the disk holds them; else UsageError, before an hour is spent."""
    needed = disk.needed(there)
    if needed > free:
        raise UsageError(
            f"{out}: {size(needed)} are needed (a checkpoint of {size(disk.checkpoint)}, one more while it is replaced, "
            f"a draft of {size(disk.draft)}) and {size(free)} are free"
        )


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds of a step whose states are computed or read, and of that the states' part; memory."""

    step_s: float
    states_s: float
    kept_rows: int
    """Rows whose states there is memory for."""

    def left_s(self, plan: Plan, rows: int, done: int, each: int) -> float:
        """Return the seconds of all steps (`each` an epoch) after so many: kept states are not computed a second time."""
        steps = range(done // each, plan.epochs)
        left = 0.0
        for epochs_before, epoch in enumerate(steps):
            # A process keeps what it met: with several, each meets other rows in each epoch. A step needs all its rows kept.
            met = 1 - (1 - 1 / plan.nproc) ** epochs_before
            hit = min(met, self.kept_rows / rows) ** plan.rows_per_step
            count = each - done % each if epoch == done // each else each
            left += count * (self.step_s - hit * self.states_s)
            if plan.minutes and left > 60 * plan.minutes:
                break
        return left


def pace_of(steps_s: Sequence[float], states_s: float, kept_rows: int) -> Pace:
    """Return the pace by the steps that were watched, without the first, and by one more look at the states of a step."""
    mean = sum(steps_s[1:]) / len(steps_s[1:])
    return Pace(step_s=mean, states_s=min(states_s, mean), kept_rows=kept_rows)


def told_before(plan: Plan, lengths: Sequence[int], steps: int, disk: Disk, free: int) -> str:
    """Return the line that stands before the first step; `lengths`: tokens of each document."""
    return (
        f"{len(lengths):,} documents, {sum(lengths):,} tokens; {plan.epochs:,} epochs, {steps:,} steps of "
        f"{plan.tokens_of_a_step:,} tokens; disk: checkpoint {size(disk.checkpoint)}, draft {size(disk.draft)}, "
        f"at the fullest {size(disk.most)} of {size(free)} free"
    )


def told_after(pace: Pace, left_s: float, limit_s: float | None, now_s: float, memory: tuple[int, int]) -> str:
    """Return the line that stands after the watched steps.

    `limit_s`: what --minutes leaves; `now_s`: since the epoch; `memory`: bytes so far, and with all that will be kept.
    """
    by_limit = limit_s is not None and limit_s < left_s
    ends_s = max(0.0, limit_s) if limit_s is not None and by_limit else left_s
    at = time.strftime("%H:%M" if ends_s < HALF_A_DAY_S else "%Y-%m-%d %H:%M", time.localtime(now_s + ends_s))
    states = f", {pace.states_s:.2g} s of it for the target's states until they are kept" if pace.kept_rows else ""
    why = f" (by --minutes; all epochs would take more than {duration(left_s)})" if by_limit else ""
    return (
        f"{pace.step_s:.2g} s a step{states}: ends in about {duration(ends_s)}, at {at}{why}; "
        f"memory {size(memory[0])}, with all that is kept {size(memory[1])}"
    )
