"""Extraction: the states of prepared data to files, shard by shard, by several processes, going on after a kill.

A target that is served (SGLang's returned hidden states, vLLM's connector) would take the place of `Target` in
`extract_shard`: it must give `states(batch)` and say its boundaries.
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
from vigil_draft.states.target import Target, default_boundaries, shape_of

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


def extract(asked: Asked, free: int | None = None) -> dict[str, Any]:
    """Extract what is not there yet, on a disk with so many free bytes (else it is asked); return the manifest."""
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    left = _plan(asked, shutil.disk_usage(out).free if free is None else free)
    if left and asked.nproc == 1:
        work(asked, left, 0)
    elif left:
        run_all(__name__, json.dumps({"asked": asdict(asked), "left": left}), asked.nproc)
    return files.read_manifest(out)


def work(asked: Asked, left: list[int], rank: int) -> None:
    """Be one process of it: every nproc-th of the shards that were left when it began, the same list for all."""
    device, out = device_of(rank, asked.nproc), Path(asked.out)
    docs = prepared.read(Path(asked.data))
    target = Target(asked.target, device, torch.bfloat16 if device.type == "cuda" else torch.float32, asked.boundaries)
    if rank == 0:
        _foretell(target, asked, [corpus for shard in left if (corpus := _corpus(docs, asked, shard))])
    began = time.monotonic()
    mine = left[rank :: asked.nproc]
    for done, shard in enumerate(mine, start=1):
        try:
            extract_shard(target, _corpus(docs, asked, shard), out, shard, shard * asked.shard)
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


def _corpus(docs: prepared.Documents, asked: Asked, shard: int) -> Corpus | None:
    """Return the documents of a shard, None where none of them has a token that counts."""
    first, end = shard * asked.shard, min((shard + 1) * asked.shard, len(docs))
    base, upto = docs.starts[first], docs.starts[end]
    starts = docs.starts[first : end + 1]
    for place in range(len(starts)):
        starts[place] -= base
    try:
        return Corpus(prepared.Documents(docs.token_ids[base:upto], docs.loss_mask[base:upto], starts), asked.length, 0)
    except UsageError:
        return None


def extract_shard(target: Target, corpus: Corpus | None, out: Path, shard: int, first: int) -> None:
    """Write the files of a shard whose first document has this number, and its record."""
    if corpus is None:
        files.finish_shard(out, shard, [])
        return
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


def _plan(asked: Asked, free: int) -> list[int]:
    """Return the shards that are left, before any process writes; UsageError for another's folder or too small a disk."""
    out = Path(asked.out)
    docs = prepared.read(Path(asked.data))
    manifest = _manifest(asked, len(docs))
    begun = _is_there(out, manifest)
    shards = manifest["shards"]
    left = [shard for shard in range(shards) if not files.finished(out, shard)]
    corpora = [corpus for shard in left if (corpus := _corpus(docs, asked, shard))]
    lengths = _lengths(corpora)
    size = files.size_of(lengths, len(manifest["boundaries"]) + 1, manifest["hidden_size"])
    if size + SPARE > free:
        raise UsageError(f"{out}: {size / 1e9:.2f} GB are needed and {free / 1e9:.2f} GB are free")
    said = f"{len(lengths)} documents, {sum(lengths)} tokens: {size / 1e9:.3f} GB of {free / 1e9:.0f} GB free"
    print(f"{said}; {shards - len(left)} of {shards} shards are there", file=sys.stderr, flush=True)
    if not begun:
        versions = {"vigil_draft": __version__, "torch": torch.__version__}
        whole = {**manifest, "command": sys.argv, "versions": versions}
        prepared.write_whole(out / files.MANIFEST, json.dumps(whole, indent=1).encode())
    return left


def _manifest(asked: Asked, documents: int) -> dict[str, Any]:
    """Return what the manifest says of an extraction, and another call of it must say too."""
    layers, width = shape_of(asked.target)
    return {
        "schema": 1,
        "kind": files.KIND,
        "conventions": files.CONVENTIONS,
        "target": asked.target,
        "data_sha256": data_sha256(Path(asked.data)),
        "boundaries": list(asked.boundaries or default_boundaries(layers)),
        "hidden_size": width,
        "length": asked.length,
        "documents": documents,
        "documents_of_a_shard": asked.shard,
        "shards": -(-documents // asked.shard),
    }


def _is_there(out: Path, manifest: dict[str, Any]) -> bool:
    """Tell whether this extraction was begun here; UsageError where another was."""
    if not (out / files.MANIFEST).exists():
        return False
    was = files.read_begun(out)
    differ = [name for name, value in manifest.items() if was.get(name) != value]
    if differ:
        raise UsageError(f"{out}: holds another extraction ({', '.join(differ)} differ): give another --out")
    return True


def _lengths(corpora: list[Corpus]) -> list[int]:
    return [end - begin for each in corpora for row in each.rows for begin, end in map(each.span, row)]


def _foretell(target: Target, asked: Asked, corpora: list[Corpus]) -> None:
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
    minutes = sum(_lengths(corpora)) / speed / asked.nproc / 60
    print(f"about {minutes:.1f} min: {speed:.0f} tokens/s a process", file=sys.stderr, flush=True)


def data_sha256(folder: Path) -> str:
    """Return a name for the data: the hash of its shards' hashes."""
    shards = [entry["sha256"] for entry in prepared.read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(shards).encode()).hexdigest()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    said = given["asked"]
    said["boundaries"] = tuple(said["boundaries"]) if said["boundaries"] else None
    try:
        work(Asked(**said), given["left"], int(os.environ["RANK"]))
    except VigilError as error:
        fail(error)
