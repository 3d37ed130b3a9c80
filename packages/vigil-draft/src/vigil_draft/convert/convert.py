"""Convert a draft: plan it, write it beside, with a block of where it comes from, and give it its name when it is whole."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from vigil.preflight.judge_draft import look_at
from vigil.preflight.seen_models import ModelSeen
from vigil.screen import hide_in_command, plain
from vigil_draft import __version__
from vigil_draft.convert.plan import Plan, plan
from vigil_draft.convert.wish import Wish
from vigil_draft.errors import NotADraftError
from vigil_draft.formats import provenance
from vigil_draft.formats.folders import Stored
from vigil_draft.formats.words import words_of
from vigil_draft.formats.writing import appearing, write_json, write_safetensors

FORMATS = ("sglang", "vllm", "speculators")
SPARE_BYTES = 1 << 20


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `notes`: what is to be known of it, a line each."""

    path: str
    bytes: int
    tensors: int
    notes: tuple[str, ...]


def convert(source: str, folder: Path, wish: Wish, target: str | None, command: tuple[str, ...]) -> Written:
    """Write a draft in another format into a folder that is not there yet.

    Raises:
        RefusedError: The other format cannot say it; nothing was written.
        NotADraftError: The source is no EAGLE-3 draft, or the target no model.
        DraftError: A file is broken, the disk is full, the folder is there.

    """
    model, served = look_at(source, target)
    if target is not None and (served is None or served.config is None):
        raise NotADraftError(f"--target {plain(target, 200)}: no folder with a config.json is there")
    found = plan(model, served, wish)
    with appearing(folder, found.bytes + SPARE_BYTES) as beside:
        hashes = write_safetensors(beside / "model.safetensors", found.tensors)
        write_json(beside / "config.json", found.config)
        write_json(beside / provenance.NAME, _block(found, hashes, wish, served, command))
    return Written(path=str(folder), bytes=found.bytes, tensors=len(found.tensors), notes=found.notes)


def _block(
    found: Plan, hashes: dict[str, str], wish: Wish, target: ModelSeen | None, command: tuple[str, ...]
) -> dict[str, Any]:
    """Return where the draft comes from. The source has a hash over its tensors and one of its config."""
    config = (found.source.path / "config.json").read_bytes()
    told = {
        "schema": provenance.SCHEMA,
        "made_by": "vigil draft convert",
        "version": __version__,
        "command": list(hide_in_command(command)),
        "format": wish.to,
        "source": {
            "path": str(found.source.path),
            "format": found.meaning.form,
            "sha256": _whole(found, hashes),
            "config_sha256": hashlib.sha256(config).hexdigest(),
            "conventions": words_of(found.draft, found.meaning, None),
        },
        "notes": list(found.notes),
        "tensors": {name: _tensor(found, name, digest) for name, digest in sorted(hashes.items())},
    }
    if target is not None:
        told["target"] = {"given": target.given, "path": target.path}
    before = provenance.provenance_of(found.source.path)
    return {**told, "before": before} if before is not None else told


def _whole(found: Plan, hashes: dict[str, str]) -> str:
    """Return one hash over all tensors that were copied, by the names that they had."""
    digest = hashlib.sha256()
    for name, old in sorted(found.names.items(), key=lambda one: one[1]):
        digest.update(f"{old} {hashes[name]}\n".encode())
    return digest.hexdigest()


def _tensor(found: Plan, name: str, digest: str) -> dict[str, str]:
    """Return which tensor of which file it was, and the hash of its bytes, here and there."""
    source = found.tensors[name]
    told = {"sha256": digest}
    if isinstance(source, Stored):
        told["from"] = found.names.get(name, "the target")
    return told
