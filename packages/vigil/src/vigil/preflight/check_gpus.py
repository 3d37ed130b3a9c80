"""GPUs for the ranks that the command asks for, and GPU numbers in CUDA_VISIBLE_DEVICES that are there."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.holders import held, how_to_end
from vigil.preflight.pointed import pointed
from vigil.preflight.ranks import Ranks, flag_of, ranks_of
from vigil.preflight.seen_host import GpuSeen, HostSeen
from vigil.preflight.visible import VISIBLE, Visible, for_cuda, runs_here, used, variable, visible
from vigil.screen import plain, size

LEFTOVER_BYTES = 1 << 30
"""A desktop, a monitor, an idle CUDA context hold less."""


def check_gpus(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find ranks without a GPU, GPU numbers that are not there, and GPUs that leftovers hold."""
    if not runs_here(host) or not for_cuda(host) or host.gpus is None:
        return
    ranks, seen = ranks_of(command), visible(command, host)
    if ranks is None or seen is None:
        return
    if not host.gpus:
        yield from _none_here(host)
        return
    if seen.wrong is not None:
        yield _wrong_number(command, host, ranks, seen)
    if _last_of(ranks) >= len(seen.gpus) and seen.wrong is None:
        yield _too_few(command, host, ranks, seen)
    using = used(command, host)
    yield from _leftovers(using[1]) if using is not None else ()


def _last_of(ranks: Ranks) -> int:
    return ranks.first + (ranks.here - 1) * ranks.step


def _none_here(host: HostSeen) -> Iterator[Finding]:
    """Say that there is no GPU for a torch that was built for them: another kind of GPU may be there that we do not see."""
    torch = host.program.torch if host.program is not None else None
    if torch is not None and torch.cuda:
        yield Finding(
            code="CUDA001",
            severity=Severity.WARNING,
            text=f"no NVIDIA GPU is seen on this host, and the installed torch {torch.version} is built for CUDA {torch.cuda}",
            advice="start it on a host with GPUs (--on HOST); in a container, give it the GPUs (docker run --gpus all)",
        )


def _wrong_number(command: Command, host: HostSeen, ranks: Ranks, seen: Visible) -> Finding:
    gpus = host.gpus or ()
    value = variable(command, host, VISIBLE) or ""
    few = _last_of(ranks) >= len(seen.gpus)
    what = f"{VISIBLE}={plain(value, 100)} names {plain(seen.wrong or 'nothing', 60)}, which is not there"
    there = f"this host has {len(gpus)} GPU{'s' if len(gpus) > 1 else ''} (0 to {len(gpus) - 1})"
    left = f"CUDA stops reading there, so that {len(seen.gpus) or 'none'} of them can be seen and {ranks.told} are asked for"
    return Finding(
        code="ENV001",
        severity=Severity.FATAL if few else Severity.WARNING,
        text=f"{what}: {there}; {left}" if few else f"{what}: {there}",
        advice=f"set {VISIBLE} to numbers from 0 to {len(gpus) - 1}, or leave it out",
        at=next((at for at, word in enumerate(command.words[: command.own]) if word.startswith(f"{VISIBLE}=")), None),
        seen="NVIDIA's driver; CUDA's rules for this variable",
    )


def _too_few(command: Command, host: HostSeen, ranks: Ranks, seen: Visible) -> Finding:
    """Say that there are too few GPUs.

    Fatal where the engine surely looks on this host alone: vLLM before 0.32 turns to Ray by itself where that is installed, and
    Ray may know of more GPUs (config/parallel.py of 0.32 raises in either case).
    """
    given = flag_of(command)
    ray = command.engine == "vllm" and host.program is not None and host.program.ray and _before(host, (0, 32))
    value = variable(command, host, VISIBLE)
    because = f" ({VISIBLE}={plain(value, 60)})" if value is not None else ""
    return pointed(
        given,
        "FLAG003",
        Severity.WARNING if ray else Severity.FATAL,
        f"{ranks.told} needs {_needs(ranks)} on this host, and {len(seen.gpus)} can be seen{because}",
        "ask for no more ranks than there are GPUs, give it more of them, or spread it over hosts (--nnodes)",
        seen="NVIDIA's driver",
    )


def _needs(ranks: Ranks) -> str:
    last = _last_of(ranks)
    if last + 1 == ranks.here:
        return f"{ranks.here} GPUs"
    return f"GPUs up to number {last} (from {ranks.first} on, {ranks.here} of them)"


def _before(host: HostSeen, version: tuple[int, int]) -> bool:
    """Say whether the engine is older than a version; one that cannot be read counts as older."""
    parts = (host.program.engine or "" if host.program is not None else "").split(".")[:2]
    found = tuple(int(one) for one in parts if one.isdigit())
    return found < version


def _leftovers(gpus: tuple[GpuSeen, ...]) -> Iterator[Finding]:
    """Name who holds the memory of the GPUs that will be used; whether the rest is enough is said elsewhere."""
    for gpu in gpus:
        holding = tuple(one for one in gpu.holders if one.used_bytes is None or one.used_bytes >= LEFTOVER_BYTES)
        taken = (gpu.total_bytes or 0) - (gpu.free_bytes or 0)
        if holding and gpu.free_bytes is not None and taken >= LEFTOVER_BYTES:
            yield Finding(
                code="GPU002",
                severity=Severity.WARNING,
                text=f"GPU {gpu.index} ({plain(gpu.name, 40)}) has {size(gpu.free_bytes)} of {size(gpu.total_bytes)} free: "
                + "; ".join(held(one) for one in holding[:3]),
                advice=how_to_end(holding),
                seen="NVIDIA's driver",
            )
