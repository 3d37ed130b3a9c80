"""Check of the draft."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.sight import Sight


def check_draft(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what is wrong."""
    _ = command, sight
    yield from ()
