"""Say in one line who holds a port or a GPU's memory."""

from vigil.preflight.seen_host import HolderSeen
from vigil.screen import plain, size

SHOWN_CHARS = 120


def told(holder: HolderSeen) -> str:
    """Return a process in words: its pid, command, since when, and whether vigil started it."""
    if holder.pid is None:
        user = "" if holder.uid is None else f" of the user with id {holder.uid}"
        return f"a process{user} that cannot be seen from here"
    words = " ".join(holder.argv) or holder.name
    what = plain(words, SHOWN_CHARS) if words else "cannot be seen from here"
    since = "" if holder.age_s is None else f", running for {span(holder.age_s)}"
    started = f", which vigil started as {plain(holder.server, 80)}" if holder.server else ""
    return f"pid {holder.pid} ({what}){since}{started}"


def held(holder: HolderSeen) -> str:
    """Return a process that holds a GPU's memory in words."""
    much = "memory" if holder.used_bytes is None else size(holder.used_bytes)
    return f"{much} by {told(holder)}"


def span(seconds: float) -> str:
    """Return how long it has been, roughly: `40 s`, `3 min`, `5 h`, `3 days`."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 86400:.0f} days"


def how_to_end(holders: tuple[HolderSeen, ...]) -> str:
    """Return what ends the holders: by vigil what it started, else by their pids."""
    names = list(dict.fromkeys(one.server for one in holders if one.server))
    if names:
        return "end it with " + " and ".join(f"`vigil stop {plain(name, 80)}`" for name in names)
    pids = [str(one.pid) for one in holders if one.pid is not None]

    return f"end it (kill {' '.join(pids)}) where it is not needed" if pids else "ask its owner"
