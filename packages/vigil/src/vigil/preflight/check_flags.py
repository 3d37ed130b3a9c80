"""Check of the flags."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.sight import Sight


def check_flags(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what is wrong."""
    _ = command, sight
    yield from ()


def version_of(command: Command, sight: Sight) -> str | None:
    """Return the version of the engine that the flags were held against."""
    _ = command
    return sight.parser.version if sight.parser is not None else None
