"""Check of the host."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.sight import Sight


def check_host(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what is wrong."""
    _ = command, sight
    yield from ()
