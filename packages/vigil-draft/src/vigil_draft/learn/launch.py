"""One process a GPU: starts them, and ends all where one ends badly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vigil.errors import VigilError
from vigil_draft.learn.order import Plan

LOOK_EVERY_S = 0.1


def launch(plan: Plan) -> dict[str, Any]:
    """Train with as many processes as the plan says; return the last line of the record."""
    Path(plan.out).mkdir(parents=True, exist_ok=True)
    if plan.nproc == 1:
        return work(plan, 0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(plan.nproc)}
    program = [sys.executable, "-m", "vigil_draft.learn.launch", json.dumps(asdict(plan))]
    processes = [subprocess.Popen(program, env={**shared, "RANK": str(rank)}) for rank in range(plan.nproc)]
    try:
        while any(each.poll() is None for each in processes):
            if any(each.poll() for each in processes):
                break
            time.sleep(LOOK_EVERY_S)
    finally:
        for each in processes:
            each.kill()
            each.wait()
    bad = [(rank, each.returncode) for rank, each in enumerate(processes) if each.returncode]
    if bad:
        raise VigilError(
            f"process {bad[0][0]} of {plan.nproc} ended with {bad[0][1]}; the last checkpoint is in {plan.out}"
        )
    record: dict[str, Any] = json.loads((Path(plan.out) / "record.jsonl").read_text().splitlines()[-1])
    return record


def work(plan: Plan, rank: int) -> dict[str, Any]:
    """Be one process of it."""
    import torch  # noqa: PLC0415 - seconds

    from vigil_draft.learn.train import train  # noqa: PLC0415 - it brings torch

    cuda = torch.cuda.is_available()
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if plan.nproc == 1:
        return train(plan, device)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // plan.nproc))
    torch.distributed.init_process_group("nccl" if cuda else "gloo", rank=rank, world_size=plan.nproc)
    try:
        return train(plan, device, rank)
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    given["boundaries"] = tuple(given["boundaries"]) if given["boundaries"] else None
    try:
        work(Plan(**given), int(os.environ["RANK"]))
    except VigilError as error:
        sys.exit(f"vigil: {error}")
