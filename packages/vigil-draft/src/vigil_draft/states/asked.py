"""What an extraction is asked for, and which documents of the data a shard of it holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from vigil.errors import UsageError
from vigil_draft.data import prepared
from vigil_draft.states.batch import Corpus

IN_PROCESS = "transformers"


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
    by: str = IN_PROCESS
    """Who computes the states: transformers in process, or a served engine."""


def data_sha256(folder: Path) -> str:
    """Return a name for the data: the hash of its shards' hashes."""
    shards = [entry["sha256"] for entry in prepared.read_manifest(folder)["shards"]]
    return hashlib.sha256("".join(shards).encode()).hexdigest()


def corpus_of(docs: prepared.Documents, asked: Asked, shard: int) -> Corpus | None:
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


def lengths_of(corpora: list[Corpus]) -> list[int]:
    """Return how many tokens each document has that is extracted."""
    return [end - begin for each in corpora for row in each.rows for begin, end in map(each.span, row)]
