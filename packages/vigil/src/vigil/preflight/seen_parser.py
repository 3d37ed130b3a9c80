"""What the engine's own parser says of the command, as the scout saw it."""

import msgspec


class ParserSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The parser of the installed engine, in its interpreter. All None: neither is on the host."""

    interpreter: str | None = None
    version: str | None = None
