"""The record of a training by speculators, from what its steps told: the same lines as ours writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vigil_draft.learn.order import Plan

LINE_EVERY_S = 10.0


class Lines:
    """Means over the steps that were told of since the last line, each ten seconds; the clock begins with the first step."""

    def __init__(self, plan: Plan, steps: int | None) -> None:
        self.plan, self.steps, self.path = plan, steps, Path(plan.out) / "record.jsonl"
        self.path.unlink(missing_ok=True)
        self.first: dict[str, Any] | None = None
        self.since: dict[str, Any] = {}
        self.told: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}

    def add(self, told: dict[str, Any]) -> None:
        """Take what a step told; print and record where the time has come."""
        if self.first is None:  # compiling lies before it
            self.first = self.since = told
            return
        self.told.append(told)
        if told["at"] - self.since["at"] >= LINE_EVERY_S:
            self.write()

    def write(self) -> dict[str, Any]:
        """Print and record the steps since the last line; return the record's last."""
        if not self.told or self.first is None:
            return self.last
        now = self.told[-1]
        joint = [self._mean(f"full_acc_{step}") for step in range(self.plan.ttt)]
        given = [self._mean(f"cond_acc_{step}") for step in range(self.plan.ttt)]
        per_s = (now["step"] - self.since["step"]) / (now["at"] - self.since["at"])
        self.last = {
            "step": now["step"],
            "of": self.steps,
            "seconds": round((now["at"] - self.first["at"]) * now["step"] / (now["step"] - 1), 1),
            "tokens_a_step": round(self._mean("tokens")),
            "tokens_per_s": round(self._mean("tokens") * per_s),
            "loss": round(self._mean("loss"), 4),
            "accuracy_where_alive": [round(each, 4) for each in given],
            "joint": [round(each, 4) for each in joint],
            "acceptance_length_k3": round(1 + sum(joint[:3]), 3),
            "acceptance_length": round(1 + sum(joint), 3),
            "peak_gib": now["peak_gib"],
        }
        with self.path.open("a") as file:
            file.write(json.dumps(self.last) + "\n")
        print(
            f"step {now['step']}/{self.steps or '?'}  {self.last['tokens_per_s']} tokens/s  loss {self.last['loss']:.3f}"
            f"  acceptance length {self.last['acceptance_length_k3']:.2f} (k 3), within the draft's words",
            file=sys.stderr,
            flush=True,
        )
        self.told, self.since = [], now
        return self.last

    def _mean(self, name: str) -> float:
        return float(sum(each[name] for each in self.told) / len(self.told))
