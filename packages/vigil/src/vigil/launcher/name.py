"""Give a start its name: the one that was asked for, or the first free one of a row. Called under the lock."""

import os
from typing import Any, Dict

from .request import Request
from .state import NAME, Refused, current_start, server_folder, show

LONGEST_MADE_NAME = 58  # leaves room for a number
ROW = 1000


def free_name(request: Request) -> str:
    """Return the name to use; refuse one that a running server has."""
    if request.name is not None:
        _refuse_used(request.name)
        return request.name
    base = request.made_name[:LONGEST_MADE_NAME]
    if not NAME.match(base):
        base = "server"
    for number in range(1, ROW):
        name = base if number == 1 else "%s-%d" % (base, number)
        if current_start(name) is None or not _used(show(name)):
            return name
    raise Refused("usage", "a thousand servers are named %s; give a --name" % base)


def _used(known: Dict[str, Any]) -> bool:
    return bool(known["alive"] or known["launcher_alive"] or (known["elsewhere"] and not known["exit"]))


def _refuse_used(name: str) -> None:
    server_folder(name)
    known = show(name) if current_start(name) is not None else {}
    if not known or not _used(known):
        return
    if known["elsewhere"]:
        raise Refused(
            "usage",
            "the name %s is in use on %s, which shares this state folder, as far as can be told; choose another --name, or "
            "stop it there (or remove %s)"
            % (name, known["elsewhere"], os.path.dirname(os.path.dirname(known["folder"]))),
        )
    raise Refused(
        "usage",
        "the name %s is in use by a running server (pid %s); choose another --name, or: vigil stop %s"
        % (name, known["life"]["main"]["pid"], name),
    )
