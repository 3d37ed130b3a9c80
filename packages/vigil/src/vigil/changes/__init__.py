"""What differs between two starts, and which of it could explain a failure. Pure: both snapshots are given."""

from vigil.changes.change import Change
from vigil.changes.compare import compare
from vigil.changes.field import GIVEN
from vigil.changes.snapshot import SCHEMA, Snapshot, read_snapshot

__all__ = ["GIVEN", "SCHEMA", "Change", "Snapshot", "compare", "read_snapshot"]
