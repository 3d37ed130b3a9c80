"""Says which of what the host showed bears on a cause, in sentences that a person can check. Pure."""

import re

from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.host import DOCKERS_SHM_BYTES, SHM, TOGETHER_S, explaining_kills, is_full, leaves_open, room_words
from vigil.diagnosis.seen import HeldPort, Seen, Told
from vigil.fact_parts import GpuMemory, Holder, KernelLine, Room
from vigil.screen import duration, size

DISK_KINDS = frozenset({"disk_full"})
SHM_KINDS = frozenset({"shm_too_small", "nccl_init"})
GPU_KINDS = frozenset({"gpu_oom_load", "oom_cuda_graph", "kv_cache_no_memory"})
GPU_CODES = frozenset({"MEM005"})
"""The GPU's memory ran out while it served: its kind is a crash like others."""
PORT_KIND = "port_in_use"
MOST_ROOMS = 6
MOST_GPUS = 8
MOST_HOLDERS = 3
COMMAND_CHARS = 100
HIGHEST_PORT = 65535
_PORTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\('[^']{0,200}', (\d{1,5})\)",
        r"\b[Pp]ort[:= ]{1,3}(\d{1,5})\b",
        r"\b(?:tcp|https?)://[^\s:'\"/]{0,200}:(\d{1,5})\b",
        r"(?:\d{1,3}(?:\.\d{1,3}){3}|\]|localhost):(\d{1,5})\b",
        r" at (\d{1,5}) is not available",
    )
)


def named_port(cause: Cause, plans: int | None) -> int | None:
    """Return the port that a cause is about: the one that its text names, else the plan's; None for other causes."""
    if cause.kind != PORT_KIND:
        return None
    found = next((match for pattern in _PORTS if (match := pattern.search(cause.text))), None)
    port = int(found[1]) if found else None
    return port if port is not None and 0 < port <= HIGHEST_PORT else plans


def about_gpu_memory(cause: Cause) -> bool:
    """Say whether a cause asks who holds the GPUs' memory."""
    return cause.kind in GPU_KINDS or cause.code in GPU_CODES


def bearing(cause: Cause | None, end: End, plans_port: int | None = None) -> tuple[Told, ...]:
    """Return what the host showed that bears on a cause; without one, what could be one."""
    seen = end.seen
    return (
        *(Told("kernel", text) for text in _kernel(cause, end)),
        *(Told("rooms", text) for text in _rooms(cause, seen)),
        *(Told("ports", text) for text in (_ports(cause, seen, plans_port) if cause is not None else ())),
        *(Told("gpus", text) for text in (_gpus(seen) if cause is not None and about_gpu_memory(cause) else ())),
    )


def _kernel(cause: Cause | None, end: End) -> list[str]:
    """Return the kernel's lines on processes of the server and on its GPUs.

    A kill of unknown whose is told only where nothing else explains an end at that very moment.
    """
    told = [line for line in end.seen.kernel if line.ours or (line.what == "xid" and line.pid is None)]
    killed = explaining_kills(end)
    told += [line for line in killed if line not in told]
    if not killed and (cause is None or leaves_open(cause.code, cause.kind)):
        told += [line for line in end.seen.kernel if _may_be_ours(line) and line not in told]
    return [_kernel_line(line, end, killed) for line in told]


def _may_be_ours(line: KernelLine) -> bool:
    return line.what == "oom_kill" and line.ours is None and abs(line.ago_s) <= TOGETHER_S


def _kernel_line(line: KernelLine, end: End, killed: tuple[KernelLine, ...]) -> str:
    words = kernel_words(line, "before the end" if end.died else "ago")
    unsure = line.what == "oom_kill" and not line.ours and line not in killed
    return f"{words} (whether that was a process of this server is not known)" if unsure else words


def kernel_words(line: KernelLine, before: str) -> str:
    """Return a line of the kernel with how long `before` what it was written."""
    group = f" (in the control group {line.group})" if line.group else ""
    return f"the kernel's log, {duration(max(0.0, line.ago_s))} {before}: {line.text}{group}"


def _rooms(cause: Cause | None, seen: Seen) -> list[str]:
    """Return the file systems that are full; where none is, those that a cause asks about."""
    kind = cause.kind if cause is not None else ""
    full = [room for room in seen.rooms if is_full(room)]
    asked = [
        room
        for room in seen.rooms
        if (kind in DISK_KINDS and room.path != SHM) or (kind in SHM_KINDS and room.path == SHM)
    ]
    return [_room(room) for room in (full or asked)[:MOST_ROOMS]]


def _room(room: Room) -> str:
    if room.path == SHM:
        small = room.total_bytes == DOCKERS_SHM_BYTES
        return room_words(room) + (" (the size that Docker gives where nobody asks for more)" if small else "")
    there = [place for place in room.places if place != room.path]
    return room_words(room) + (f" ({', '.join(there)})" if there else "")


def _ports(cause: Cause, seen: Seen, plans: int | None) -> list[str]:
    wanted = named_port(cause, plans)
    return [text for one in seen.ports if one.port == wanted or wanted is None for text in _port(one)]


def _port(held: HeldPort) -> list[str]:
    if not held.holders:
        return [f"nobody listens on port {held.port} now"]
    return [f"port {held.port} is held by {holder_words(one)}" for one in held.holders[:MOST_HOLDERS]]


def holder_words(holder: Holder) -> str:
    """Return who a process is: pid, command, user, and the name under which vigil started it."""
    if holder.pid is None:
        user = f" of uid {holder.uid}" if holder.uid is not None else ""
        return f"a process{user} that cannot be seen from here"
    if holder.ours:
        return f"pid {holder.pid} of this server"
    command = " ".join(holder.argv) or holder.name or "not to be seen from here"
    command = command if len(command) <= COMMAND_CHARS else command[: COMMAND_CHARS - 1] + "…"
    user = f", uid {holder.uid}" if holder.uid is not None else ""
    started = f", which vigil started as {holder.server}" if holder.server else ""
    return f"pid {holder.pid} ({command}){user}{started}"


def _gpus(seen: Seen) -> list[str]:
    """Return who holds the GPUs' memory, those first on which somebody else does."""
    gpus = sorted(seen.gpus, key=lambda gpu: not any(not one.ours for one in gpu.holders))
    return [_gpu(gpu) for gpu in gpus[:MOST_GPUS] if gpu.used_bytes is not None]


def _gpu(gpu: GpuMemory) -> str:
    name = f" ({gpu.name})" if gpu.name else ""
    text = f"GPU {gpu.index}{name}: {size(gpu.used_bytes)} of {size(gpu.total_bytes)} in use"
    others = [one for one in gpu.holders if not one.ours]
    parts = [f"{size(one.used_bytes)} by {holder_words(one)}" for one in others[:MOST_HOLDERS]]
    if len(others) > MOST_HOLDERS:
        parts.append(f"some by {len(others) - MOST_HOLDERS} more")
    held = sum(one.used_bytes or 0 for one in gpu.holders if one.ours)
    parts += [f"{size(held)} by this server"] if held else []
    return f"{text}: {'; '.join(parts)}" if parts else text
