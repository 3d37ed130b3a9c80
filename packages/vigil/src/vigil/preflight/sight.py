"""What was seen on the host ahead of a start (`vigil.scout` looks), part by part; None: it could not be looked at."""

import msgspec

from vigil.preflight.seen_host import HostSeen
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.seen_parser import ParserSeen


class FileSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A file of settings that the command names. `text` None: it cannot be read, for `trouble`.

    `sure`: the engine cannot read it, either.
    """

    given: str
    text: str | None = None
    trouble: str | None = None
    sure: bool = False


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the scout. `troubles`: parts that could not be looked at, a line each.

    `version`: the engine's, as the user names it or as it is installed; None where neither is known.
    """

    parser: ParserSeen | None = None
    models: tuple[ModelSeen, ...] | None = None
    host: HostSeen | None = None
    files: tuple[FileSeen, ...] | None = None
    troubles: tuple[str, ...] = ()
    version: str | None = None
    took_s: dict[str, float] = msgspec.field(default_factory=dict)
