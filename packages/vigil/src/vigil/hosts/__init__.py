"""How to reach a host, and what runs there for us: the desk for requests, an observer for watching."""

from vigil.hosts.call import CommandError, PortError, call, look_ahead
from vigil.hosts.link import Link, open_link, why_ended
from vigil.hosts.reach import Reach, reach_of
from vigil.hosts.tunnel import tunnel

__all__ = [
    "CommandError",
    "Link",
    "PortError",
    "Reach",
    "call",
    "look_ahead",
    "open_link",
    "reach_of",
    "tunnel",
    "why_ended",
]
