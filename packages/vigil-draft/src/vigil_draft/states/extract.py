"""Extraction by the target in process: states of prepared data to files, by several processes, going on after a kill."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vigil.errors import VigilError
from vigil_draft.data import prepared
from vigil_draft.processes import device_of, fail, orphaned, run_all
from vigil_draft.states import files
from vigil_draft.states.asked import Asked, corpus_of, lengths_of
from vigil_draft.states.batch import Corpus
from vigil_draft.states.begin import begin
from vigil_draft.states.target import Target

TOKENS_AT_ONCE = {"cuda": 32768, "cpu": 2048}


def extract(asked: Asked, free: int | None = None) -> dict[str, Any]:
    """Extract what is not there yet, on a disk with so many free bytes (else it is asked); return the manifest."""
    left = begin(asked, free)
    if left and asked.nproc == 1:
        work(asked, left, 0)
    elif left:
        run_all(__name__, json.dumps({"asked": asdict(asked), "left": left}), asked.nproc)
    return files.read_manifest(Path(asked.out))


def work(asked: Asked, left: list[int], rank: int) -> None:
    """Be one process of it: every nproc-th of the shards that were left when it began, the same list for all."""
    device, out = device_of(rank, asked.nproc), Path(asked.out)
    docs = prepared.read(Path(asked.data))
    target = Target(asked.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32, asked.boundaries)
    if rank == 0:
        _try_out(target, asked, [corpus for shard in left if (corpus := corpus_of(docs, asked, shard))])
    mine = left[rank :: asked.nproc]
    progress = Progress(len(mine))
    for shard in mine:
        with files.kept_where_full(out):
            extract_shard(target, corpus_of(docs, asked, shard), out, shard, shard * asked.shard)
        if orphaned():
            raise VigilError("the process that started this one is gone")
        if rank == 0:
            progress.finished()


class Progress:
    """Counts the shards that are finished, and says how long the rest will take."""

    def __init__(self, shards: int) -> None:
        self.shards, self.done, self.began = shards, 0, time.monotonic()

    def finished(self) -> None:
        """Count one more, and say so."""
        self.done += 1
        minutes = (time.monotonic() - self.began) / self.done * (self.shards - self.done) / 60
        print(f"shard {self.done} of {self.shards}, {minutes:.1f} min left", file=sys.stderr, flush=True)


def foretell(tokens: int, speed: float, each: str = "") -> None:
    """Say how long so many tokens will take, at so many a second; `each`: of what the speed is."""
    print(f"about {tokens / speed / 60:.1f} min: {speed:.0f} tokens/s{each}", file=sys.stderr, flush=True)


def extract_shard(target: Target, corpus: Corpus | None, out: Path, shard: int, first: int) -> None:
    """Write the files of a shard whose first document has this number, and its record."""
    if corpus is None:
        files.finish_shard(out, shard, [])
        return
    at_once = max(1, TOKENS_AT_ONCE[target.device.type] // corpus.length)
    entries = []
    for row in range(0, len(corpus.rows), at_once):
        batch = corpus.batch(list(range(row, min(row + at_once, len(corpus.rows)))))
        aux, last = target.states(batch.to(target.device))
        states = torch.cat([aux.unflatten(1, (len(target.boundaries), -1)), last.unsqueeze(1)], dim=1).to(
            "cpu", torch.bfloat16
        )
        for at, upto in zip(batch.bounds.tolist(), batch.bounds.tolist()[1:], strict=False):
            number = int(batch.document[at])
            if number >= 0:  # not padding
                part = slice(at, upto)
                tokens, mask = batch.token_ids[part].clone(), batch.loss_mask[part].clone()
                entries.append(files.write_document(out, first + number, states[part].clone(), tokens, mask))
    files.finish_shard(out, shard, entries)


def _try_out(target: Target, asked: Asked, corpora: list[Corpus]) -> None:
    """Say how long it will take, by one batch of the first shard after a first one that warms up."""
    if not corpora:
        return
    corpus = corpora[0]
    rows = list(range(min(len(corpus.rows), max(1, TOKENS_AT_ONCE[target.device.type] // corpus.length))))
    batch = corpus.batch(rows).to(target.device)
    for _ in range(2):
        began = time.monotonic()
        _, last = target.states(batch)
        float(last[0, 0])  # waits for the GPU
    speed = int((batch.document >= 0).sum()) / (time.monotonic() - began)
    foretell(sum(lengths_of(corpora)) // asked.nproc, speed, " a process")


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    said = given["asked"]
    said["boundaries"] = tuple(said["boundaries"]) if said["boundaries"] else None
    try:
        work(Asked(**said), given["left"], int(os.environ["RANK"]))
    except VigilError as error:
        fail(error)
