"""A snapshot taken apart: one field a thing that can differ, by a key that the table of explanations speaks of."""

from collections.abc import Callable

from vigil.changes import asked, host, installed
from vigil.changes.field import Fields, Found
from vigil.changes.snapshot import Snapshot

PARTS: dict[str, Callable[[Snapshot, bool], Found | None]] = {
    "command": asked.command,
    "cwd": asked.folder,
    "env": asked.variables,
    "inner": asked.inner,
    "inner env": asked.inner_variables,
    "files": asked.files,
    "program": installed.program,
    "packages": installed.packages,
    "sources": installed.sources,
    "edited": installed.edited,
    "models": installed.models,
    "machine": host.machine,
    "gpus": host.gpus,
    "disks": host.disks,
}


def fields_of(snapshot: Snapshot, key_id: str | None) -> dict[str, Fields]:
    """Return the fields by part of the snapshot, then by key; without the parts that were not seen.

    `key_id`: the key of the other one. Only digests by the same key are compared.
    """
    keyed = snapshot.key_id == key_id and key_id is not None
    seen = {part: look(snapshot, keyed) for part, look in PARTS.items()}
    return {part: dict(found) for part, found in seen.items() if found is not None}
