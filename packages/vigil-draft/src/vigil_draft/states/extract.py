"""Extraction: the states of prepared data to files, shard by shard, by several processes, going on after a kill.

A target that is served (SGLang's returned hidden states, vLLM's connector) would take the place of `Target` in `extract_shard`: it must give
`states(batch)` and say its boundaries.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from vigil.errors import UsageError, VigilError
from vigil_draft import __version__
from vigil_draft.data import prepared
from vigil_draft.processes import device_of, fail, orphaned, run_all
from vigil_draft.states import files
from vigil_draft.states.batch import Corpus
from vigil_draft.states.target import Target

TOKENS_AT_ONCE = {"cuda": 32768, "cpu": 2048}
SPARE = 64 << 20
"""Bytes that must stay free on the disk."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One extraction."""

    target: str
    data: str
    out: str
    length: int = 2048
    shard: int = 256
    """Documents of a shard."""
    nproc: int = 1
    boundaries: tuple[int, ...] | None = None


def extract(asked: Asked) -> dict[str, Any]:
    """Extract what is not there yet; return the manifest."""
    Path(asked.out).mkdir(parents=True, exist_ok=True)
    if asked.nproc == 1:
        work(asked, 0)
    else:
        run_all(__name__, json.dumps(asdict(asked)), asked.nproc)
    return files.read_manifest(Path(asked.out))


def work(asked: Asked, rank: int) -> None:
    """Be one process of it: every nproc-th shard."""
    device, out = device_of(rank, asked.nproc), Path(asked.out)
    docs = prepared.read(Path(asked.data))
    target = Target(asked.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32, asked.boundaries)
    shards = -(-len(docs) // asked.shard)
    left = [shard for shard in range(shards) if not files.finished(out, shard)]
    corpora = {shard: _corpus(docs, asked, shard) for shard in left}
    if rank == 0:
        _plan(asked, target, docs, shards, corpora)
    began = time.monotonic()
    mine = left[rank :: asked.nproc]
    for done, shard in enumerate(mine, start=1):
        try:
            extract_shard(target, corpora[shard], out, shard, shard * asked.shard)
        except OSError as error:
            raise VigilError(f"{out}: {error.strerror}: finished shards are kept, the same command goes on") from None
        if orphaned():
            raise VigilError("the process that started this one is gone")
        if rank == 0:
            spent = time.monotonic() - began
            print(
                f"shard {done} of {len(mine)}, {spent / done * (len(mine) - done) / 60:.1f} min left",
                file=sys.stderr,
                flush=True,
            )


def _corpus(docs: prepared.Documents, asked: Asked, shard: int) -> Corpus:
    first, end = shard * asked.shard, min((shard + 1) * asked.shard, len(docs))
    base, upto = docs.starts[first], docs.starts[end]
    starts = docs.starts[first : end + 1]
    for place in range(len(starts)):
        starts[place] -= base
    return Corpus(prepared.Documents(docs.token_ids[base:upto], docs.loss_mask[base:upto], starts), asked.length, 0)


def extract_shard(target: Target, corpus: Corpus, out: Path, shard: int, first: int) -> None:
    """Write the files of a shard whose first document has this number, and its record."""
    at_once = max(1, TOKENS_AT_ONCE[target.device.type] // corpus.length)
    entries = []
    for begin in range(0, len(corpus.rows), at_once):
        batch = corpus.batch(list(range(begin, min(begin + at_once, len(corpus.rows)))))
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


def _plan(asked: Asked, target: Target, docs: prepared.Documents, shards: int, corpora: dict[int, Corpus]) -> None:
    """Say what it will take, refuse where the disk cannot hold it or the folder is another's, and write the manifest."""
    out = Path(asked.out)
    lengths = [end - begin for each in corpora.values() for row in each.rows for begin, end in map(each.span, row)]
    width = target.embedding.shape[1]
    size = files.size_of(lengths, len(target.boundaries) + 1, width)
    free = shutil.disk_usage(out).free
    if size + SPARE > free:
        raise UsageError(f"{out}: {size / 1e9:.2f} GB are needed and {free / 1e9:.2f} GB are free")
    seconds = sum(lengths) / _speed(target, corpora) / asked.nproc if lengths else 0.0
    said = f"{len(lengths)} documents, {sum(lengths)} tokens: {size / 1e9:.3f} GB of {free / 1e9:.0f} GB free, about {seconds / 60:.1f} min"
    print(f"{said}; {shards - len(corpora)} of {shards} shards are there", file=sys.stderr, flush=True)
    manifest = {
        "schema": 1,
        "kind": files.KIND,
        "conventions": files.CONVENTIONS,
        "target": asked.target,
        "data_sha256": data_sha256(Path(asked.data)),
        "boundaries": list(target.boundaries),
        "hidden_size": width,
        "length": asked.length,
        "documents": len(docs),
        "documents_of_a_shard": asked.shard,
        "shards": shards,
    }
    path = out / files.MANIFEST
    if path.exists():
        was = json.loads(path.read_bytes())
        differ = [name for name, value in manifest.items() if was.get(name) != value]
        if differ:
            raise UsageError(f"{out}: holds another extraction ({', '.join(differ)} differ): give another --out")
        return
    versions = {"vigil_draft": __version__, "torch": torch.__version__}
    prepared.write_whole(path, json.dumps({**manifest, "command": sys.argv, "versions": versions}, indent=1).encode())


def _speed(target: Target, corpora: dict[int, Corpus]) -> float:
    """Return tokens a second of the target, by one batch of the first shard after a first one that warms up."""
    corpus = next(iter(corpora.values()))
    rows = list(range(min(len(corpus.rows), max(1, TOKENS_AT_ONCE[target.device.type] // corpus.length))))
    batch = corpus.batch(rows).to(target.device)
    for _ in range(2):
        began = time.monotonic()
        _, last = target.states(batch)
        float(last[0, 0])  # waits for the GPU
    return int((batch.document >= 0).sum()) / (time.monotonic() - began)


def data_sha256(folder: Path) -> str:
    """Return a name for the data: the hash of its shards' hashes."""
    shards = [entry["sha256"] for entry in prepared.read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(shards).encode()).hexdigest()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    given["boundaries"] = tuple(given["boundaries"]) if given["boundaries"] else None
    try:
        work(Asked(**given), int(os.environ["RANK"]))
    except VigilError as error:
        fail(error)
