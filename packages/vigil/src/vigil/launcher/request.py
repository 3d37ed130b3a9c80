"""Read a request to start something: what may be started, in the bytes that the kernel will see."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

from .attester import Attester, read_attester
from .plugin import Plugin, read_plugin
from .state import Refused


class Request(NamedTuple):
    """What is asked for. `name` None: make one from `made_name`. `log` None: beside the state. `host`: where it will listen.

    `keep`: what the tool wants kept of the start, see `snapshot`; None: nothing. `attester`, `plugin`: put into its
    Pythons, or None.
    """

    name: Optional[str]
    made_name: str
    command: List[bytes]
    env: Dict[bytes, bytes]
    cwd: str
    log: Optional[str]
    host: Optional[str]
    port: Optional[int]
    plan: Any
    keep: Optional[Dict[str, Any]]
    attester: Optional[Attester]
    plugin: Optional[Plugin] = None


def read_request(spec: Dict[str, Any]) -> Request:
    """Return the request; refuse what no kernel could run."""
    command = [_bytes(word, "the command") for word in spec.get("command") or ()]
    if not command or not command[0]:
        raise Refused("usage", "the command is empty; nothing was started")
    cwd = _folder(spec.get("cwd"))
    log = spec.get("log")
    return Request(
        name=spec.get("name"),
        made_name=str(spec.get("made_name") or "server"),
        command=command,
        env=_environment(spec.get("env") or {}),
        cwd=cwd,
        log=os.path.abspath(os.path.join(cwd, os.path.expanduser(_text(log, "the log's name")))) if log else None,
        host=spec.get("host"),
        port=spec.get("port"),
        plan=spec.get("plan") or {},
        keep=spec["keep"] if isinstance(spec.get("keep"), dict) else None,
        attester=read_attester(spec.get("attester")),
        plugin=read_plugin(spec.get("plugin")),
    )


def _environment(given: Dict[str, Any]) -> Dict[bytes, bytes]:
    env = {}
    for name, value in given.items():
        if not name or "=" in name:
            raise Refused("usage", "%r is no name of an environment variable; nothing was started" % name)
        env[_bytes(name, "a variable's name")] = _bytes(value, "the value of %s" % name)
    return env


def _folder(cwd: Optional[str]) -> str:
    try:
        here = os.getcwd()
    except OSError:  # it was removed under us
        here = "/"
        if not cwd or not os.path.isabs(os.path.expanduser(cwd)):
            raise Refused("usage", "the current folder does not exist any more; nothing was started") from None
    folder = os.path.join(here, os.path.expanduser(_text(cwd, "the folder"))) if cwd else here
    if not os.path.isdir(folder):
        raise Refused("usage", "there is no folder %s to run the command in; nothing was started" % folder)
    return os.path.abspath(folder)


def _text(value: Any, what: str) -> str:
    """Return a path as this interpreter names it, whatever locale it runs in."""
    return os.fsdecode(_bytes(value, what))


def _bytes(value: Any, what: str) -> bytes:
    """Return a text that came as JSON as the bytes it was made from: bytes that are no UTF-8 travel as lone surrogates."""
    if not isinstance(value, str) or "\0" in value:
        raise Refused("usage", "%s holds a NUL byte, or is no text; nothing was started" % what)
    return value.encode("utf-8", "surrogateescape")
