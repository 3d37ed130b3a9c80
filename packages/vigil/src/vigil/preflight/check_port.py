"""The port that the server would listen on: free, or whose it is."""

from collections.abc import Iterator

from vigil.engines import registry
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.holders import how_to_end, told
from vigil.preflight.pointed import pointed
from vigil.preflight.seen_host import HostSeen


def check_port(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find a port that another process listens on: the server would load for minutes and then die of it."""
    port = host.port
    if port is None or not port.holders or command.last("--headless") is not None:
        return
    given = command.last(*registry.table(command.engine).port_flags)
    who = "; ".join(told(one) for one in port.holders[:3])
    yield pointed(
        given,
        "PORT001",
        Severity.FATAL,
        f"port {port.port} is already taken by {who}",
        f"give another --port, or {how_to_end(port.holders)}",
        seen="the host's listening sockets",
    )
