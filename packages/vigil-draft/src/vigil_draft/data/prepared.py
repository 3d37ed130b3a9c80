"""Prepared data on disk: documents as token ids with a loss mask, in safetensors shards beside a manifest.

A shard holds `token_ids [N] int64`, `loss_mask [N] bool`, `starts [D+1] int64`: document d is `token_ids[starts[d]:starts[d+1]]`.
The mask is true at tokens that the target wrote (what a draft must guess), false at the prompt's. No numpy, no torch.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vigil.errors import UsageError

MANIFEST = "manifest.json"
KIND = "vigil draft data"
HEADER_LIMIT = 1 << 20
"""Bytes of a safetensors header that is still believed: three tensors need 300."""


@dataclass(frozen=True)
class Documents:
    """Documents one after another; `starts` has one entry more than there are documents."""

    token_ids: array[int]
    loss_mask: bytes
    starts: array[int]

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.starts) - 1


def documents(pairs: Iterable[tuple[Iterable[int], Iterable[bool]]]) -> Documents:
    """Join pairs of token ids and mask, one a document."""
    ids, mask, starts = array("q"), bytearray(), array("q", [0])
    for tokens, counts in pairs:
        ids.extend(tokens)
        mask.extend(bytes(map(bool, counts)))
        if len(ids) != len(mask):
            raise ValueError(f"document {len(starts) - 1}: as many mask entries as tokens are needed")
        starts.append(len(ids))
    return Documents(ids, bytes(mask), starts)


def write_shard(folder: Path, number: int, docs: Documents) -> dict[str, Any]:
    """Write one shard, beside and renamed, and return its entry of the manifest."""
    parts = {
        "token_ids": ("I64", docs.token_ids.tobytes(), len(docs.token_ids)),
        "starts": ("I64", docs.starts.tobytes(), len(docs.starts)),
        "loss_mask": ("BOOL", docs.loss_mask, len(docs.loss_mask)),
    }
    header, at = {}, 0
    for name, (kind, data, length) in parts.items():
        header[name] = {"dtype": kind, "shape": [length], "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    content = len(head).to_bytes(8, "little") + head + b"".join(data for _, data, _ in parts.values())
    name = f"data-{number:05d}.safetensors"
    write_whole(folder / name, content)
    return {
        "file": name,
        "documents": len(docs),
        "tokens": len(docs.token_ids),
        "loss_tokens": sum(docs.loss_mask),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is either whole or not there, whatever kills us: beside it, synced, renamed."""
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_manifest(folder: Path, shards: list[dict[str, Any]], provenance: dict[str, Any]) -> None:
    """Write the manifest, last: a folder without one is not finished."""
    whole = {"schema": 1, "kind": KIND, **provenance, "shards": shards}
    write_whole(folder / MANIFEST, json.dumps(whole, indent=1).encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest; UsageError, with one clear line, where there is none or it is another thing's."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{folder}: no {MANIFEST}: not prepared data, or not finished") from None
    except ValueError:
        raise UsageError(f"{folder / MANIFEST}: not JSON") from None
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND or not isinstance(manifest.get("shards"), list):
        raise UsageError(f"{folder / MANIFEST}: not a manifest of prepared data")
    return manifest


def read_shards(folder: Path) -> Iterator[Documents]:
    """Yield the shards that the manifest names; UsageError where one is missing, cut or changed."""
    for entry in read_manifest(folder)["shards"]:
        try:
            name, digest = Path(entry["file"]).name, entry["sha256"]
        except (TypeError, KeyError):
            raise UsageError(f"{folder / MANIFEST}: a shard's entry lacks its file or sha256") from None
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise UsageError(f"{folder / name}: {error.strerror}: the manifest names this shard") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise UsageError(f"{folder / name}: its sha256 is not the manifest's: cut, or changed since")
        yield _parse(folder / name, content)


def read(folder: Path) -> Documents:
    """Read all shards as one."""
    ids, mask, starts = array("q"), bytearray(), array("q", [0])
    for shard in read_shards(folder):
        base = len(ids)
        ids.extend(shard.token_ids)
        mask.extend(shard.loss_mask)
        starts.extend(base + start for start in shard.starts[1:])
    if not ids:
        raise UsageError(f"{folder}: holds no documents")
    return Documents(ids, bytes(mask), starts)


def _parse(path: Path, content: bytes) -> Documents:
    try:
        size = int.from_bytes(content[:8], "little")
        if not 0 < size <= HEADER_LIMIT:
            raise ValueError("header")  # noqa: TRY301 - one place says what is wrong
        header = json.loads(content[8 : 8 + size])
        docs = Documents(
            array("q", _tensor(content, size, header["token_ids"], "I64")),
            _tensor(content, size, header["loss_mask"], "BOOL"),
            array("q", _tensor(content, size, header["starts"], "I64")),
        )
        starts = docs.starts
        sound = (
            len(docs.token_ids) == len(docs.loss_mask) == starts[-1]
            and starts[0] == 0
            and list(starts) == sorted(starts)
        )
    except (ValueError, KeyError, TypeError, IndexError):
        sound = False
    if not sound:
        raise UsageError(f"{path}: not a shard of prepared data (token_ids, loss_mask, starts)")
    return docs


def _tensor(content: bytes, header: int, entry: dict[str, Any], kind: str) -> bytes:
    begin, end = entry["data_offsets"]
    width = 8 if kind == "I64" else 1
    if (
        entry["dtype"] != kind
        or end - begin != width * math.prod(entry["shape"])
        or not 0 <= begin <= end <= len(content) - 8 - header
    ):
        raise ValueError("tensor")
    return content[8 + header + begin : 8 + header + end]
