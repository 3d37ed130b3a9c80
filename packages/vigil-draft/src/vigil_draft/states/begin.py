"""The beginning of an extraction, before a second is spent on states: what is left to do, whether it fits, and the manifest."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from vigil.errors import UsageError
from vigil.survey.digest import read_small
from vigil_draft import __version__
from vigil_draft.data import prepared
from vigil_draft.formats.identity import difference, identity_of
from vigil_draft.states import files
from vigil_draft.states.asked import Asked, corpus_of, data_sha256, lengths_of
from vigil_draft.states.target import default_boundaries, folder_of, shape_of

TOKENIZER_BYTES = 64 << 20
SPARE = 64 << 20
"""Bytes that must stay free on the disk."""


def begin(asked: Asked, free: int | None = None) -> list[int]:
    """Return the shards that are left, of a disk with so many free bytes (else it is asked); the manifest is written.

    Raises:
        UsageError: The folder holds another extraction, the data is another tokenizer's, or the disk is too small.

    """
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    docs = prepared.read(Path(asked.data))
    _must_be_its_tokens(asked)
    manifest = manifest_of(asked, len(docs))
    begun = _is_there(out, manifest)
    shards = manifest["shards"]
    left = [shard for shard in range(shards) if not files.finished(out, shard)]
    lengths = lengths_of([corpus for shard in left if (corpus := corpus_of(docs, asked, shard))])
    size = files.size_of(lengths, len(manifest["boundaries"]) + 1, manifest["hidden_size"])
    free = shutil.disk_usage(out).free if free is None else free
    if size + SPARE > free:
        raise UsageError(f"{out}: {size / 1e9:.2f} GB are needed and {free / 1e9:.2f} GB are free")
    said = f"{len(lengths)} documents, {sum(lengths)} tokens: {size / 1e9:.3f} GB of {free / 1e9:.0f} GB free"
    print(f"{said}; {shards - len(left)} of {shards} shards are there", file=sys.stderr, flush=True)
    if not begun:
        versions = {"vigil_draft": __version__, "torch": torch.__version__}
        whole = {**manifest, "command": sys.argv, "versions": versions}
        prepared.write_whole(out / files.MANIFEST, json.dumps(whole, indent=1).encode())
    return left


def manifest_of(asked: Asked, documents: int) -> dict[str, Any]:
    """Return what the manifest says of an extraction, and another call of it must say too."""
    layers, width = shape_of(asked.target)
    return {
        "schema": 1,
        "kind": files.KIND,
        "conventions": files.CONVENTIONS,
        "states_by": asked.by,
        "target": asked.target,
        "target_identity": identity_of(folder_of(asked.target)),
        "data_sha256": data_sha256(Path(asked.data)),
        "boundaries": list(asked.boundaries or default_boundaries(layers)),
        "hidden_size": width,
        "length": asked.length,
        "documents": documents,
        "documents_of_a_shard": asked.shard,
        "shards": -(-documents // asked.shard),
    }


def _must_be_its_tokens(asked: Asked) -> None:
    """Refuse data that says it was made with another tokenizer than the target has."""
    told: Any = prepared.read_manifest(Path(asked.data))
    for name in ("asked", "target", "tokenizer_sha256"):
        told = told.get(name) if isinstance(told, dict) else None
    folder = folder_of(asked.target)
    tokenizer = read_small(str(folder / "tokenizer.json"), TOKENIZER_BYTES) if folder else None
    if isinstance(told, str) and tokenizer and hashlib.sha256(tokenizer).hexdigest() != told:
        raise UsageError(f"{asked.data}: prepared with another tokenizer than that of {asked.target}: other token ids")


def _is_there(out: Path, manifest: dict[str, Any]) -> bool:
    """Tell whether this extraction was begun here; UsageError where another was."""
    if not (out / files.MANIFEST).exists():
        return False
    was = files.read_begun(out)
    other = difference(was.get("target_identity"), manifest["target_identity"])
    if other:
        raise UsageError(f"{out}: was begun with another target at {manifest['target']}: {other} changed")
    known = {name: value for name, value in manifest.items() if name in was or name not in files.LATER}
    differ = [name for name, value in known.items() if name != "target_identity" and was.get(name) != value]
    if differ:
        raise UsageError(f"{out}: holds another extraction ({', '.join(differ)} differ): give another --out")
    return True
