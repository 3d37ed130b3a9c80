"""What a server runs, asked by somebody who does not watch it: of one that vigil started, or of what answers on a port."""

import os
from typing import Any, Dict, List, Optional, Tuple

from ..launcher import kin, state
from ..observer import attested
from ..observer.exchange import Target, make_target
from ..observer.keys import KeyRing
from ..observer.process import all_pids, read_argv, read_stat
from ..observer.redact import Redactor
from ..observer.roots import find_by_port
from .look import strings


def attest(  # noqa: PLR0913 - what may be asked for
    *,
    name: Optional[str] = None,
    scheme: str = "http",
    host: str = "127.0.0.1",
    port: Optional[int] = None,
    key: Optional[str] = None,
    key_flags: Any = (),
    key_variables: Any = (),
    signs: Any = (),
    **order: Any,
) -> Dict[str, Any]:
    """Return the fields of `Attested`, and `words`: the command of the engine's process as it stands in /proc."""
    target = make_target(scheme, host, port) if port else None
    redactor = Redactor()
    keys = KeyRing(redactor, key, strings(key_flags), strings(key_variables))
    known = state.show(name) if name else {}
    if name and not known["alive"]:
        raise state.Refused("usage", "%s does not run: what it runs can be asked of a living server only" % name)
    main = known["life"]["main"]["pid"] if name else find_by_port(target, strings(signs)) if target else None
    members = _members(kin.find(known["life"]) if name else _below(main))
    _unlock(keys, main, target, [pid for pid, _ in members])
    found = attested.look(
        known.get("folder"), members, attested.read_order(order), redactor, target, keys.key(), launched=bool(name)
    )
    found["words"] = _words(known.get("folder"), main, redactor)
    return found


def _members(found: List[Tuple[int, int]]) -> List[Tuple[int, str]]:
    return [(pid, " ".join(read_argv(pid))) for pid, _ in found]


def _below(main: Optional[int]) -> List[Tuple[int, int]]:
    """Return (pid, start ticks) of a process and all below it."""
    stats = [one for one in map(read_stat, all_pids()) if one is not None and one.alive]
    found = {main} if main else set()
    while True:
        more = {one.pid for one in stats if one.ppid in found} - found
        if not more:
            return [(one.pid, one.start_ticks) for one in stats if one.pid in found]
        found |= more


def _unlock(keys: KeyRing, main: Optional[int], target: Optional[Target], pids: List[int]) -> None:
    """Let the server's own key go to its port, where one of its own processes listens there."""
    from ..launcher.taken import listener  # noqa: PLC0415 - only where there is a port

    stat = read_stat(main) if main else None
    if stat is not None:
        keys.follow(stat.pid, stat.start_ticks, read_argv(stat.pid))
    holder = listener(target.port, target.host).get("pid") if target is not None else None
    keys.face("ours" if holder in pids else "foreign" if holder else None)


def _words(folder: Optional[str], main: Optional[int], redactor: Redactor) -> List[str]:
    """Return the engine's words: what a start script came to, where that was seen; else the process's own."""
    inner = state.read_json(os.path.join(folder, state.SNAPSHOT)).get("inner") if folder else None
    command = inner.get("command") if isinstance(inner, dict) else None
    words = strings(command.get("words")) if isinstance(command, dict) else []
    return words or (list(redactor.clean_argv(read_argv(main))) if main else [])
