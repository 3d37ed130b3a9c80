"""One thing of a snapshot that can differ, and the ways to make one."""

import time
from collections.abc import Iterator

import msgspec

from vigil.screen import size

MASKED = "***"
GIVEN = "given"
"""What stands for the value of a flag that takes none."""
LOOSE = "|"
"""What stands behind it is compared where both sides have it."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """`what` and `text` are for people; `same` is compared (None: not to be compared).

    `free` and `total`, in bytes: a level, of which only a large difference matters. `names`: words by which a log names it.
    """

    what: str
    text: str
    same: str | None = ""
    free: int | None = None
    total: int | None = None
    names: tuple[str, ...] = ()


Fields = dict[str, Field]
Found = Iterator[tuple[str, Field]]


def plain(what: str, text: str, *names: str) -> Field:
    """Return a field that is compared as it is shown."""
    return Field(what=what, text=text, same=text, names=names)


def content(what: str, digest: str | None, *names: str, text: str | None = None) -> Field:
    """Return a field whose content is known by a hash only."""
    return Field(what=what, text=text or f"content {digest or 'unreadable'}", same=digest, names=names)


def level(what: str, free: int | None, total: int | None) -> Field:
    """Return how much is free of something."""
    return Field(what=what, text=size(free), same=None, free=free, total=total)


def written(wall_s: int) -> str:
    """Return when a file was written, in UTC."""
    try:
        return time.strftime("written %Y-%m-%d %H:%M:%S", time.gmtime(wall_s))
    except (OverflowError, ValueError, OSError):
        return "written at no time"
