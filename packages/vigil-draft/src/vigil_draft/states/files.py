"""Files of extracted states: what speculators 0.9 reads, with a manifest of ours and a record of each finished shard beside them.

`hs_{i}.safetensors` of document i holds `hidden_states [T, A+1, H]` (the boundaries in order, then the state BEFORE the
final norm), `token_ids [T]` int64 and, for us, `loss_mask [T]` (its reader takes the first two by name and lets others
be). All lie in one folder, since its `FileTransfer` looks nowhere else. A shard is a range of documents;
`shard-{n}.json` is written last, with the sha256 of each of its files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from vigil.errors import UsageError, VigilError
from vigil_draft.data.prepared import write_whole
from vigil_draft.formats.identity import difference

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch, Corpus

MANIFEST = "manifest.json"
KIND = "vigil draft states"
LATER = ("states_by", "target_identity")
"""What manifests of the first days do not say."""
A_FILE = 304
"""Bytes of a file beside its tensors: safetensors' header."""
CONVENTIONS = (
    "hidden_states [T, A+1, H]: the states at the boundaries in this order, then the state before the final norm; "
    "boundary k is the state after k layers, transformers' hidden_states[k]"
)


@contextmanager
def kept_where_full(folder: Path) -> Iterator[None]:
    """Tell a disk that takes no more in one line."""
    try:
        yield
    except OSError as error:
        raise VigilError(f"{folder}: {error.strerror}: finished shards are kept, the same command goes on") from None


def size_of(lengths: list[int], states: int, width: int, number: int = 2) -> int:
    """Return the bytes of the files of documents of these lengths: states a token, their width, bytes a number."""
    return sum(length * (states * width * number + 8 + 1) + A_FILE for length in lengths)


def write_document(
    folder: Path, number: int, states: torch.Tensor, token_ids: torch.Tensor, loss_mask: torch.Tensor
) -> dict[str, Any]:
    """Write one document's file, whole, and return its entry of the shard's record."""
    content = save({"hidden_states": states.contiguous(), "token_ids": token_ids, "loss_mask": loss_mask})
    path = folder / f"hs_{number}.safetensors"
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.replace(path)
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def record_of(folder: Path, shard: int) -> Path:
    """Return where a shard's record stands."""
    return folder / f"shard-{shard:05d}.json"


def finish_shard(folder: Path, shard: int, entries: list[dict[str, Any]]) -> None:
    """Write a shard's record, after its files are on the disk."""
    for entry in entries:
        with (folder / entry["file"]).open("rb") as file:
            os.fsync(file.fileno())
    write_whole(record_of(folder, shard), json.dumps({"shard": shard, "files": entries}).encode())


def finished(folder: Path, shard: int) -> bool:
    """Tell whether a shard has its record, and its files the sizes in it."""
    try:
        return all((folder / entry["file"]).stat().st_size == entry["bytes"] for entry in entries_of(folder, shard))
    except (OSError, UsageError):
        return False


def entries_of(folder: Path, shard: int) -> list[dict[str, Any]]:
    """Return what a shard's record says of its files; UsageError where it cannot be read."""
    path = record_of(folder, shard)
    try:
        return [
            {"file": Path(each["file"]).name, "bytes": each["bytes"], "sha256": each["sha256"]}
            for each in json.loads(path.read_bytes())["files"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: cannot be read: extract again to go on") from None


def read_begun(folder: Path) -> dict[str, Any]:
    """Return the manifest of an extraction that may have shards left; UsageError where there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        raise UsageError(f"{folder}: no {MANIFEST} that can be read: not extracted states") from None
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or not isinstance(manifest.get("shards"), int):
        raise UsageError(f"{folder / MANIFEST}: not a manifest of extracted states")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of extracted states; UsageError where there is none, or a shard is missing."""
    manifest = read_begun(folder)
    missing = [n for n in range(manifest["shards"]) if not record_of(folder, n).exists()]
    if missing:
        raise UsageError(
            f"{folder}: {len(missing)} of {manifest['shards']} shards are missing, the first is {missing[0]}: "
            "extract again to go on"
        )
    return manifest


class FileStates:
    """Gives a batch's states from files; each file's sha256 is looked at when it is first read."""

    def __init__(
        self, folder: Path, corpus: Corpus, facts: dict[str, Any], identity: dict[str, str] | None = None
    ) -> None:
        self.folder, self.corpus = folder, corpus
        manifest = read_manifest(folder)
        other = difference(manifest.get("target_identity"), identity or {})
        if other:
            raise UsageError(
                f"{folder}: states of another target than the one given (it was {manifest.get('target')}): {other} differ"
            )
        differ = [
            f"{name} {manifest.get(name)!r}, not {value!r}"
            for name, value in facts.items()
            if manifest.get(name) != value
        ]
        if differ:
            raise UsageError(f"{folder}: states of something else: {'; '.join(differ)}")
        if manifest["length"] < corpus.length:
            raise UsageError(
                f"{folder}: documents were cut to {manifest['length']} tokens: give --length {manifest['length']} or less"
            )
        self.unseen: dict[str, str] = {}
        for shard in range(manifest["shards"]):
            for entry in entries_of(folder, shard):
                self.unseen[entry["file"]] = entry["sha256"]

    def document(self, number: int) -> dict[str, torch.Tensor]:
        """Read one file; UsageError where it is missing, cut, changed, or of another document."""
        path = self.folder / f"hs_{number}.safetensors"
        try:
            content = path.read_bytes()
            if self.unseen.pop(path.name, None) not in {None, hashlib.sha256(content).hexdigest()}:
                raise UsageError(f"{path}: its sha256 is not its shard's: cut, or changed since")
            found = load(content)
            begin, end = self.corpus.span(number)
            if not torch.equal(found["token_ids"][: end - begin], self.corpus.token_ids[begin:end]):
                raise UsageError(f"{path}: holds other tokens than document {number} of the data")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        except (SafetensorError, KeyError):
            raise UsageError(f"{path}: not a file of states") from None
        return {name: tensor[: end - begin] for name, tensor in found.items()}

    def read(self, rows: list[int], batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states at the boundaries side by side, and `last`, as the target's `states` does."""
        whole: torch.Tensor | None = None
        for place, row in enumerate(rows):
            at = place * batch.length
            for number in self.corpus.rows[row]:
                states = self.document(number)["hidden_states"]
                if whole is None:
                    whole = torch.zeros(len(batch.token_ids), *states.shape[1:], dtype=states.dtype)
                whole[at : at + len(states)] = states
                at += len(states)
        assert whole is not None  # noqa: S101 - a row has a document
        whole = whole.to(batch.token_ids.device)
        return whole[:, :-1].flatten(1), whole[:, -1]
