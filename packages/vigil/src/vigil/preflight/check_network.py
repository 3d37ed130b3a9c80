"""The settings of the network: interfaces and adapters that NCCL and gloo are told to use, proxies that catch localhost."""

import ipaddress
from collections.abc import Iterator, Sequence

from vigil.engines import address, registry
from vigil.preflight.check_nccl import check_nccl
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.ranks import ranks_of
from vigil.preflight.seen_host import HostSeen
from vigil.preflight.visible import assigned_at, runs_here, variable
from vigil.screen import plain


def check_network(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find variables that name what is not on this host, and proxies that stand between the server and itself."""
    if host.settings is None or not runs_here(host):
        return
    ranks = ranks_of(command)
    many = ranks is not None and (ranks.here > 1 or ranks.nodes > 1)
    yield from _nccl_interface(command, host, many=many)
    yield from _gloo_interface(command, host)
    yield from _adapters(command, host, many=many)
    yield from check_nccl(command, host) if many else ()
    yield from _proxy(command, host)


def _there(host: HostSeen) -> str:
    return ", ".join(plain(one, 40) for one in (host.settings.interfaces if host.settings is not None else ())[:12])


def _nccl_interface(command: Command, host: HostSeen, *, many: bool) -> Iterator[Finding]:
    """Find a NCCL_SOCKET_IFNAME that fits no interface: a list of beginnings, `=` for whole names, `^` for all others."""
    value = variable(command, host, "NCCL_SOCKET_IFNAME")
    there = host.settings.interfaces if host.settings is not None else ()
    if not value or len(value) < 2 or value.startswith("^") or not there or not many:  # noqa: PLR2004 - one letter is not read
        return
    names = [one.strip().partition(":")[0] for one in value.removeprefix("=").split(",")]
    whole = value.startswith("=")
    if any(one == name if whole else one.startswith(name) for name in names for one in there):
        return
    yield Finding(
        code="NCCL001",
        severity=Severity.FATAL,
        text=f"NCCL_SOCKET_IFNAME={plain(value, 100)} fits no network interface of this host ({_there(host)}): "
        "NCCL finds nothing to talk through",
        advice="name one that is there, or leave the variable out",
        at=assigned_at(command, "NCCL_SOCKET_IFNAME"),
        seen="/sys/class/net; NCCL User Guide, NCCL_SOCKET_IFNAME",
    )


def _gloo_interface(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find a GLOO_SOCKET_IFNAME that is no interface: torch 2.13 raises even for one rank ("Unable to find address for")."""
    value = variable(command, host, "GLOO_SOCKET_IFNAME")
    there = host.settings.interfaces if host.settings is not None else ()
    names = [one.strip() for one in (value or "").split(",") if one.strip()]
    missing = [one for one in names if one not in there]
    if not missing or not there or command.engine not in {"sglang", "vllm"}:
        return
    yield Finding(
        code="DIST001",
        severity=Severity.FATAL,
        text=f"GLOO_SOCKET_IFNAME={plain(value or '', 100)}: there is no interface {plain(missing[0], 40)} on this host "
        f"({_there(host)})",
        advice="name one that is there, or leave the variable out",
        at=assigned_at(command, "GLOO_SOCKET_IFNAME"),
        seen="/sys/class/net; torch 2.13, third_party/gloo/gloo/transport/tcp/device.cc",
    )


def _adapters(command: Command, host: HostSeen, *, many: bool) -> Iterator[Finding]:
    """Find a NCCL_IB_HCA that fits no adapter: NCCL then talks through plain sockets, without a word at its default level."""
    value = variable(command, host, "NCCL_IB_HCA")
    there = host.settings.adapters if host.settings is not None else ()
    if not value or value.startswith("^") or not many:
        return
    names = [one.strip().partition(":")[0] for one in value.removeprefix("=").split(",") if one.strip()]
    if any(one.startswith(name) for name in names for one in there):
        return
    have = ", ".join(there[:8]) or "none"
    yield Finding(
        code="NCCL003",
        severity=Severity.WARNING,
        text=f"NCCL_IB_HCA={plain(value, 100)} fits no adapter of this host ({have}): NCCL will use plain sockets",
        advice="name one that is there, or leave the variable out",
        at=assigned_at(command, "NCCL_IB_HCA"),
        seen="/sys/class/infiniband",
    )


def _proxy(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find a proxy before SGLang's first request, which goes to itself with `requests`: without an answer it ends itself.

    http_server.py, `_execute_server_warmup`, of 0.4.9 to 0.5.23; DiffusionNFT#21.
    """
    if command.engine != "sglang" or command.last("--skip-server-warmup") is not None:
        return
    where = address(registry.table("sglang"), command.words, command.env)
    names = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
    found = next(((name, value) for name in names if (value := variable(command, host, name))), None)
    if where is None or where.scheme != "http" or found is None:
        return
    excepted = variable(command, host, "no_proxy") or variable(command, host, "NO_PROXY") or ""
    if bypasses(where.host, where.port, excepted.split(",")):
        return
    list_of = f"no_proxy={plain(excepted, 100)} does not name {where.host}" if excepted else "no_proxy is not set"
    yield Finding(
        code="HANG001",
        severity=Severity.WARNING,
        text=f"{found[0]}={plain(found[1], 100)}, and {list_of}: SGLang's own first request, to {where.host}:{where.port}, goes "
        "through the proxy, and SGLang ends itself where that does not answer",
        advice=f"--env no_proxy={excepted + ',' if excepted else ''}localhost,127.0.0.1,{where.host}".removesuffix(
            ",127.0.0.1"
        ),
        at=assigned_at(command, found[0]),
        seen="the environment; sglang 0.5.23, entrypoints/http_server.py",
    )


def bypasses(host: str, port: int, excepted: Sequence[str]) -> bool:
    """Say whether a request to a host goes past the proxy, as `requests` reads no_proxy: ends of names, networks of addresses."""
    for entry in (one.strip() for one in excepted):
        if not entry:
            continue
        if entry in {"*", host} or f"{host}:{port}".endswith(entry) or _in_network(host, entry):
            return True
        if not _is_address(host) and host.endswith(entry):
            return True
    return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _in_network(host: str, entry: str) -> bool:
    try:
        return "/" in entry and ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
