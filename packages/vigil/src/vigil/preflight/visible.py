"""Which GPUs of the host the command will see, and which of them its ranks will use."""

import msgspec

from vigil.preflight.command import Command
from vigil.preflight.ranks import Ranks, ranks_of
from vigil.preflight.seen_host import GpuSeen, HostSeen
from vigil.screen import hide_secrets

VISIBLE = "CUDA_VISIBLE_DEVICES"


class Visible(msgspec.Struct, frozen=True, kw_only=True):
    """`gpus` in CUDA's order. `wrong`: the first entry of CUDA_VISIBLE_DEVICES that is none; CUDA sees nothing from there on.

    `ordered`: which is which is known. Without CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA puts the fastest first, so that the numbers of
    different GPUs are its own.
    """

    gpus: tuple[GpuSeen, ...]
    wrong: str | None = None
    ordered: bool = True


def variable(command: Command, host: HostSeen, name: str) -> str | None:
    """Return a variable as the command will see it, without secrets, or None where it is not set."""
    if name in command.env:
        return hide_secrets(command.env[name])
    return host.settings.variables.get(name) if host.settings is not None else None


def assigned_at(command: Command, name: str) -> int | None:
    """Return the word before the engine's own that sets a variable, or None where it is set elsewhere."""
    return next((at for at, word in enumerate(command.words[: command.own]) if word.startswith(name + "=")), None)


def runs_here(host: HostSeen) -> bool:
    """Say whether the engine is on this host: else what is here says nothing of where the command will run."""
    program = host.program
    return not host.outside and program is not None and (program.engine is not None or not program.python)


def for_cuda(host: HostSeen) -> bool:
    """Say whether the engine will use NVIDIA's GPUs: its torch was built for them, as far as that is known."""
    torch = host.program.torch if host.program is not None else None
    return torch is None or torch.cuda is not None


def visible(command: Command, host: HostSeen) -> Visible | None:
    """Return the GPUs that the command sees; None where that is not known (a part of a GPU, no look at the driver)."""
    if host.gpus is None or any(one.divided for one in host.gpus):
        return None
    ordered = len({one.name for one in host.gpus}) <= 1 or variable(command, host, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    told = variable(command, host, VISIBLE)
    if told is None:
        return Visible(gpus=host.gpus, ordered=ordered)
    chosen: list[GpuSeen] = []
    for entry in (one.strip() for one in told.split(",")):
        if entry.startswith("MIG-") or "$" in entry:
            return None
        found = _gpu(entry, host.gpus)
        if found is None:
            return Visible(gpus=tuple(chosen), wrong=entry, ordered=ordered)
        chosen.append(found)
    return Visible(gpus=tuple(chosen), ordered=ordered)


def _gpu(entry: str, gpus: tuple[GpuSeen, ...]) -> GpuSeen | None:
    if entry.isascii() and entry.isdigit():
        return gpus[int(entry)] if len(entry) < 4 and int(entry) < len(gpus) else None  # noqa: PLR2004 - a thousand GPUs
    named = [one for one in gpus if entry.startswith("GPU-") and one.uuid.startswith(entry)]
    return named[0] if len(named) == 1 else None


def used(command: Command, host: HostSeen) -> tuple[Ranks, tuple[GpuSeen, ...]] | None:
    """Return the ranks and the GPUs that they use; None where that is not known, or there are too few.

    Where the numbers are CUDA's own, those with the most free memory stand for them: nothing is refused that could fit.
    """
    ranks, seen = ranks_of(command), visible(command, host)
    if ranks is None or seen is None or not runs_here(host) or not for_cuda(host):
        return None
    if seen.ordered:
        chosen = seen.gpus[ranks.first :: ranks.step][: ranks.here]
    else:
        chosen = tuple(sorted(seen.gpus, key=lambda one: -(one.free_bytes or 0)))[: ranks.here]
    return (ranks, chosen) if len(chosen) == ranks.here and chosen else None
