"""Where a server that was started with some command line answers, and what it calls its model."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from vigil.engine_table import EngineTable
from vigil.engines.commandline import assignments, expand, flatten, program, values
from vigil.engines.registry import find

HIGHEST_PORT = 65535
_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1", "[::]": "::1"}  # noqa: S104
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_SOCKET_FLAGS = ("--uds",)
_OFF = frozenset({"none", "null", "{}", "off", "false"})


class Address(msgspec.Struct, frozen=True):
    """Where to ask: `host` is one to connect to, never a wildcard."""

    scheme: str
    host: str
    port: int


def address(table: EngineTable, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Address | None:
    """Return where the server of `argv` answers on its own host, or None where that cannot be known.

    A flag stands before a variable of `env` or of the command line itself, and a variable before the engine's default;
    of a program that we do not know only a port that it is given counts. A published port of a container stands for the
    inner one. A Unix socket has no such address. Not seen: ports in a configuration file.
    """
    seen, before, own = find(argv)
    if seen.name != table.name:
        before, own = (), flatten(argv)
    variables = {**(env or {}), **assignments((*before, *own))}
    if table.name == "generic" and "ssh" in map(program, own):
        own = tuple(word for word in own if word != "-p")  # ssh's own port, not the server's
    host = _last(own, table.host_flags, table.host_variables, variables)
    if values(own, _SOCKET_FLAGS) or (host or "").endswith(".sock"):
        return None
    port = _port(_last(own, table.port_flags, table.port_variables, variables))
    if port is None:
        if table.name == "generic":
            return None
        port = table.default_port
    published = _published(before, port)
    if published is not None:
        host, port = None, published
    secure = _last(own, table.tls_flags, table.tls_variables, variables) is not None
    return Address("https" if secure else "http", _connectable(host, table.default_host), port)


def served_model(argv: Sequence[str], env: Mapping[str, str] | None = None) -> str | None:
    """Return the id under which the server of `argv` will list its model, or None where that cannot be known."""
    table, before, own = find(argv)
    if table.name == "generic":
        return None
    variables = {**(env or {}), **assignments((*before, *own))}
    name = _last(own, table.name_flags, table.name_variables, variables)
    if name:
        return name.split(",")[0]
    model = _last(own, table.model_flags, table.model_variables, variables)
    if not model and table.model_position and own and not own[0].startswith("-"):
        model = expand(own[0], variables)
    return model or None


def asks_speculation(table: EngineTable, argv: Sequence[str]) -> bool:
    """Say whether `argv` asks for speculative decoding; a value of `none` asks for none."""
    seen, _, own = find(argv)
    given = values(own if seen.name == table.name else flatten(argv), table.speculation_flags)
    return bool(given) and not any(value.lower() in _OFF for value in given)


def _last(words: Sequence[str], flags: Sequence[str], names: Sequence[str], variables: Mapping[str, str]) -> str | None:
    """Return the last value of `flags`, else the first of the variables `names` that is set, else None."""
    given = values(words, flags)
    if given:
        return expand(given[-1], variables)
    return next((variables[name] for name in names if variables.get(name)), None)


def _port(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[0-9]{1,5}", text):
        return None
    port = int(text)
    return port if 0 < port <= HIGHEST_PORT else None


def _published(before: Sequence[str], inner: int) -> int | None:
    """Return the host's port for the port `inner` of a container that `before` runs, or None."""
    if not any(program(word) in _CONTAINERS for word in before):
        return None
    for given in values(before, ("-p", "--publish")):
        parts = given.split("/")[0].split(":")
        if len(parts) > 1 and parts[-1] == str(inner):
            return _port(parts[-2])
    return None


def _connectable(host: str | None, default: str) -> str:
    host = default if host is None else host
    return _EVERYWHERE.get(host, host.strip("[]"))
