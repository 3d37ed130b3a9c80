"""From the journal to shards: in the order of the prompts, training and held-out apart, each folder written whole."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from vigil_draft.data.conversations import Conversation
from vigil_draft.data.journal import Document, Entry, Journal
from vigil_draft.data.prepared import Documents, documents, write_manifest, write_shard, write_whole

SHARD_TOKENS = 4 << 20
SIDES = ("train", "heldout")
PROMPTS = "prompts.jsonl"


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations are held out: a `share` of them, drawn by `seed`."""

    share: float
    seed: int

    def side(self, one: Conversation) -> str:
        """Return a conversation's side: by a hash of its first turn, so that no such turn is on both."""
        drawn = int.from_bytes(hashlib.sha256(f"{self.seed}/{one.first_key}".encode()).digest()[:8], "big")
        return "heldout" if drawn < self.share * 2**64 else "train"


def write_sides(
    folder: Path, read: tuple[Conversation, ...], journal: Journal, split: Split, provenance: dict[str, Any]
) -> dict[str, Any]:
    """Write `train/` and `heldout/`, each with its prompts; return what was counted. Raises `OSError`."""
    counts: dict[str, Any] = {}
    for side in SIDES:
        there = folder / side
        there.mkdir(exist_ok=True)
        prompts: list[int] = []
        said = Counter[str]()
        entries = (one for one in journal.entries() if split.side(read[one.n]) == side)
        shards = [write_shard(there, number, docs) for number, docs in enumerate(_shards(entries, said, prompts))]
        write_whole(there / PROMPTS, b"".join(msgspec.json.encode(_line(read[n])) + b"\n" for n in prompts))
        write_manifest(there, shards, {**provenance, "side": side, "counts": dict(said)})
        totals = {name: sum(one[name] for one in shards) for name in ("documents", "tokens", "loss_tokens")}
        counts[side] = {**totals, **said}
    return counts


def _shards(entries: Iterator[Entry], said: Counter[str], prompts: list[int]) -> Iterator[Documents]:
    """Yield documents by the shard, and count what became of the conversations."""
    held: list[Document] = []
    size = 0
    for entry in entries:
        said["conversations"] += 1
        if entry.lost is not None:
            said[f"lost: {entry.lost.partition(':')[0]}"] += 1
        else:
            prompts.append(entry.n)
        if entry.cut is not None:
            said[f"cut by the limit of the {entry.cut}"] += 1
        held += entry.documents
        size += sum(len(one.ids) for one in entry.documents)
        if size >= SHARD_TOKENS:
            yield _joined(held)
            held, size = [], 0
    if held:
        yield _joined(held)


def _joined(held: list[Document]) -> Documents:
    return documents((one.ids, _mask(one)) for one in held)


def _mask(one: Document) -> Iterator[bool]:
    marks = bytearray(len(one.ids))
    for begin, end in one.spans:
        marks[begin:end] = b"\1" * (end - begin)
    return map(bool, marks)


def _line(one: Conversation) -> dict[str, Any]:
    """Return a conversation's line in a file of prompts."""
    messages = [{"role": "system", "content": one.system}] if one.system is not None else []
    return {"messages": [*messages, *({"role": "user", "content": turn} for turn in one.turns)]}
