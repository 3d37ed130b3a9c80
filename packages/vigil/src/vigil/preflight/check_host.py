"""Check the command against its host: port, GPUs, memory, driver, rooms, limits, network, hub, the program that runs."""

from collections.abc import Iterator

from vigil.preflight.check_driver import check_driver
from vigil.preflight.check_gpus import check_gpus
from vigil.preflight.check_hub import check_hub
from vigil.preflight.check_limits import check_limits
from vigil.preflight.check_memory import check_memory
from vigil.preflight.check_network import check_network
from vigil.preflight.check_port import check_port
from vigil.preflight.check_program import check_program
from vigil.preflight.check_rooms import check_rooms
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding
from vigil.preflight.seen_host import HostSeen
from vigil.preflight.sight import Sight
from vigil.screen import plain

CHECKS = (
    check_port, check_gpus, check_driver, check_memory, check_network, check_rooms, check_limits, check_program,
)  # fmt: skip


def check_host(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find what stands in the way on the host. A host that was not looked at stands in nobody's way."""
    if sight.host is not None:
        for check in CHECKS:
            yield from check(command, sight.host)
        if sight.models is None:  # else what lies in the cache is known, too: check_fetch
            yield from check_hub(command, sight.host)


def unlooked(host: HostSeen | None) -> tuple[str, ...]:
    """Return what of a host is not looked at: where the command does not run on it, or its GPUs are others. At most one line."""
    if host is None or not host.behind:
        others = " and ".join(plain(one, 20) for one in host.others) if host is not None else ""
        return (f"GPUs of {others}: only NVIDIA's are looked at",) if others else ()
    what = "the port, GPUs, memory and limits of the host that it goes to"
    if not host.sent:
        what = "the program, models, GPUs, memory and limits there"
    return (f"behind {plain(host.behind, 60)}: {what} were not looked at",)
