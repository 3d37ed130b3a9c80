"""speculators' own training command in a process of its own, over states that `vigil draft extract` wrote.

Run by `speculators_run.py` beside this with the Python where speculators is installed, which need not know vigil:

    python speculators_child.py JOB.json

It writes what the command reads beside the states (the dataset of `datasets`, the vocabulary's two maps), calls what
`python -m speculators.train` calls, and prints a JSON line for each step that speculators logs, and one at the end.
Whatever else it or its libraries print goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from datasets import Dataset
from safetensors import safe_open


class Lines(logging.Handler):
    """Prints what its logger of measurements tells of training, each a mapping; all else goes to standard error.

    A handler of the root logger: `setup_metric_logger` takes those of its own loggers away.
    """

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self.out = out

    def emit(self, record: logging.LogRecord) -> None:
        """Print one: when it was (monotonic seconds), its step, what it measured."""
        told: Any = record.msg
        if isinstance(told, dict) and "train" in told:
            profile = told["profile"]
            tokens = round(profile["tokens_per_s"] * profile["step_ms"] / 1000)
            done = {"at": time.monotonic(), "step": told["global_step"] + 1, "tokens": tokens, "peak_gib": peak_gib()}
            say(self.out, **done, **told["train"])
        elif not isinstance(told, dict):
            print(record.getMessage(), file=sys.stderr)


def peak_gib() -> float | None:
    """Return the most memory that tensors took so far."""
    return round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None


def say(out: TextIO, **what: Any) -> None:
    """Print a line."""
    out.write(json.dumps(what) + "\n")
    out.flush()


def write_inputs(job: dict[str, Any]) -> None:
    """Write the dataset, its documents as often as it is seen, the last once more (speculators wants one to validate on)."""
    rows: dict[str, list[Any]] = {"input_ids": [], "loss_mask": [], "seq_len": []}
    states, links = Path(job["states"]), Path(job["folder"]) / "states"
    links.mkdir(exist_ok=True)
    for name in job["files"]:
        with safe_open(states / name, "np") as file:
            ids = file.get_tensor("token_ids")
            mask = file.get_tensor("loss_mask")
        rows["input_ids"].append(ids)
        rows["loss_mask"].append(mask)
        rows["seq_len"].append(len(ids))
    count = len(job["files"])
    places = [*range(count)] * job["times"] + [count - 1]
    for place, which in enumerate(places):
        (links / f"hs_{place}.safetensors").symlink_to(states / job["files"][which])
    Dataset.from_dict(rows).select(places).with_format("torch").save_to_disk(job["folder"])
    words = np.array(job["words"])
    inside = np.zeros(job["vocabulary"], dtype=bool)
    inside[words] = True
    np.save(Path(job["folder"]) / f"d2t-{len(words)}.npy", words - np.arange(len(words)))
    np.save(Path(job["folder"]) / f"t2d-{len(words)}.npy", inside)
    job["arguments"] += ["--train-data-ratio", repr((len(places) - 0.5) / len(places))]


def without_accelerator() -> list[str]:
    """Let it run on a CPU, which its trainer does not know; return arguments for that."""
    from speculators.train import trainer  # noqa: PLC0415

    trainer.get_local_rank = lambda: "cpu"  # where it sends model and batches
    torch.accelerator.synchronize = lambda *_: None
    return [
        *("--hidden-states-dtype", "float32", "--num-workers", "0"),
        *("--draft-attn-impl", "sdpa", "--loss-implementation", "eager"),
    ]


def own_lists() -> None:
    """Give each of speculators' two fused loss kernels a list of tiles of its own.

    Both are made by one autotuner and share its list, which torch 2.11's compiler takes for one variable under two names:
    "ListVariable is already tracked for mutation" ends the first backward step (speculators 0.9.0, on an H200). The tiles
    stay the same.
    """
    from speculators.losses import fused  # noqa: PLC0415

    for kernel in (fused.loss_forward_kernel, fused.loss_backward_kernel):
        kernel.configs = list(kernel.configs)
        kernel.keys = list(kernel.keys)


def main() -> None:
    """Do the job of the file that is named."""
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    write_inputs(job)
    from speculators.train.cli import main as train  # noqa: PLC0415 - `python -m speculators.train`
    from speculators.train.config import TrainConfig  # noqa: PLC0415

    if not torch.cuda.is_available():
        job["arguments"] = [*without_accelerator(), *job["arguments"]]
    else:
        own_lists()
    logging.getLogger().addHandler(Lines(lines))
    train(TrainConfig.resolve(job["arguments"]))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    say(lines, done=True, device=device, arguments=job["arguments"], torch=torch.__version__)


if __name__ == "__main__":
    main()
