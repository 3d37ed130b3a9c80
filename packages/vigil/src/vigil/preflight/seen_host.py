"""What the host offers to the start, as the scout saw it."""

import msgspec


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The host. What is None could not be seen."""

    host: str | None = None
