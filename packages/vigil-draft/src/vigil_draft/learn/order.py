"""What a training is asked to do, and in which order it sees its rows: nothing here needs torch."""

from __future__ import annotations

import math
import random
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One training; what is written beside its draft."""

    target: str
    data: str
    out: str
    states: str | None = None
    epochs: int = 10
    minutes: float | None = None
    draft_vocab: int = 32000
    length: int = 2048
    tokens_per_step: int = 16384
    lr: float = 1e-4
    ttt: int = 7
    decay: float = 0.8
    warmup: float = 0.015
    clip: float = 0.5
    nproc: int = 1
    seed: int = 0
    save_minutes: float = 5.0
    boundaries: tuple[int, ...] | None = None
    inner: int | None = None
    """Size of the draft's MLP; None: the target's."""
    keep_gib: float | None = None
    """Memory for the target's states; None: a share of what is free."""

    @property
    def tokens_of_a_step(self) -> int:
        """Tokens of a step of all processes, padding among them."""
        return self.rows_per_step * self.nproc * self.length

    @property
    def rows_per_step(self) -> int:
        """Rows of one process's step."""
        return max(1, self.tokens_per_step // self.length // self.nproc)

    def facts(self) -> dict[str, Any]:
        """Return what decides the result: a checkpoint of other facts is another training's."""
        kept = asdict(self)
        for name in ("out", "save_minutes", "keep_gib"):
            kept.pop(name)
        kept["boundaries"] = list(self.boundaries) if self.boundaries else None
        return kept


def steps_per_epoch(plan: Plan, rows: int) -> int:
    """Count the steps of an epoch; the last rows that fill no step wait for the next shuffle."""
    return max(1, rows // (plan.rows_per_step * plan.nproc))


def rows_of(plan: Plan, rows: int, step: int, rank: int) -> list[int]:
    """Return the rows of a step (counted from 0 over all epochs) of one process: the same whenever it is asked."""
    each = steps_per_epoch(plan, rows)
    epoch, place = divmod(step, each)
    order = list(range(rows))
    random.Random(f"{plan.seed}/{epoch}").shuffle(order)  # noqa: S311 - an order of training, no secret
    begin = (place * plan.nproc + rank) * plan.rows_per_step
    return order[begin : begin + plan.rows_per_step] or order[: plan.rows_per_step]


def rate(plan: Plan, progress: float) -> float:
    """Return the learning rate at a part (0 to 1) of the training: a straight warm-up, then a half cosine to nothing."""
    if progress < plan.warmup:
        return plan.lr * (progress + 1e-4) / (plan.warmup + 1e-4)
    return plan.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - plan.warmup) / (1 - plan.warmup))))
