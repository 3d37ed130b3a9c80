"""One process a GPU: what each of them does."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vigil.errors import VigilError
from vigil_draft.learn.order import Plan
from vigil_draft.processes import device_of, fail, run_all


def launch(plan: Plan) -> dict[str, Any]:
    """Train with as many processes as the plan says; return the last line of the record."""
    Path(plan.out).mkdir(parents=True, exist_ok=True)
    if plan.nproc == 1:
        return work(plan, 0)
    run_all(__name__, json.dumps(asdict(plan)), plan.nproc)
    record: dict[str, Any] = json.loads((Path(plan.out) / "record.jsonl").read_text().splitlines()[-1])
    return record


def work(plan: Plan, rank: int) -> dict[str, Any]:
    """Be one process of it."""
    from torch import distributed  # noqa: PLC0415 - seconds

    from vigil_draft.learn.train import train  # noqa: PLC0415 - it brings torch

    device = device_of(rank, plan.nproc)
    if plan.nproc == 1:
        return train(plan, device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=plan.nproc)
    try:
        return train(plan, device, rank)
    finally:
        distributed.destroy_process_group()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    given["boundaries"] = tuple(given["boundaries"]) if given["boundaries"] else None
    try:
        work(Plan(**given), int(os.environ["RANK"]))
    except VigilError as error:
        fail(error)
