"""What was seen on the host ahead of a start (`vigil.scout` looks), part by part; None: it could not be looked at."""

import msgspec

from vigil.preflight.seen_host import HostSeen
from vigil.preflight.seen_models import ModelSeen
from vigil.preflight.seen_parser import ParserSeen


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the scout. `troubles`: parts that could not be looked at, a line each.

    `version`: the engine's, as the user names it or as it is installed; None where neither is known.
    """

    parser: ParserSeen | None = None
    models: tuple[ModelSeen, ...] | None = None
    host: HostSeen | None = None
    troubles: tuple[str, ...] = ()
    version: str | None = None
    took_s: dict[str, float] = msgspec.field(default_factory=dict)
