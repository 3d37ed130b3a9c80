"""How to reach a host, and what runs there for us: the desk for requests, an observer for watching.

What is needed is imported when it is first used: who only looks at this machine (`vigil check`) loads neither observer nor anyio.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vigil.hosts.ask import call, look_ahead
    from vigil.hosts.fork import look_here
    from vigil.hosts.forward import tunnel
    from vigil.hosts.link import Link, open_link, why_ended
    from vigil.hosts.reach import Reach, reach_of
    from vigil.hosts.reply import CommandError, PortError

__all__ = [
    "CommandError",
    "Link",
    "PortError",
    "Reach",
    "call",
    "look_ahead",
    "look_here",
    "open_link",
    "reach_of",
    "tunnel",
    "why_ended",
]

# No module here has the name of what it gives: once imported, it would stand in its place.
_HOMES = {
    "CommandError": ".reply",
    "Link": ".link",
    "PortError": ".reply",
    "Reach": ".reach",
    "call": ".ask",
    "look_ahead": ".ask",
    "look_here": ".fork",
    "open_link": ".link",
    "reach_of": ".reach",
    "tunnel": ".forward",
    "why_ended": ".link",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'vigil.hosts' has no attribute {name!r}")
    return getattr(import_module(home, __name__), name)
