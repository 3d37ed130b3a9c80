"""One difference between two starts, in words."""

import msgspec


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """`before` and `after` as they were found, None where there was nothing; a secret is never shown.

    `explains`: it is of a kind that could explain the cause at hand, or the cause names it.
    """

    what: str
    before: str | None = None
    after: str | None = None
    explains: bool = False
