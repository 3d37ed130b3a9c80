"""The fields of the machine: driver, GPUs, memory, disks, limits."""

from msgspec import UNSET

from vigil.changes.field import LOOSE, Field, Found, level, plain
from vigil.changes.snapshot import Gpu, Machine, Room, Snapshot
from vigil.screen import size


def machine(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001 - a column of the table of parts
    """Return what the kernel says of the host."""
    return None if snapshot.machine is None else _machine(snapshot.machine)


def gpus(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return the GPUs and what is free of each."""
    if snapshot.gpus is None:
        return None
    return (one for index, gpu in enumerate(snapshot.gpus) for one in _gpu(index, gpu))


def disks(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return what is free where a start writes."""
    if snapshot.disks is None:
        return None
    return (one for path, room in snapshot.disks.items() for one in _disk(path, room))


def _machine(told: Machine) -> Found:
    """Yield what was seen; what was not has no field, since a side that does not know says nothing of a change."""
    boot = Field(what="boot of the host (it was restarted)", text=told.boot_id[:8], same=told.boot_id)
    named = (("host", "host", told.host), ("kernel", "kernel", told.kernel), ("glibc", "C library", told.glibc))
    yield from ((key, plain(what, text)) for key, what, text in named if text)
    if told.boot_id:
        yield "boot", boot
    if told.driver is not UNSET:
        yield "driver", plain("GPU driver", told.driver or "none")
    if told.cpus is not None:
        yield "cpus", plain("processors", str(told.cpus))
    if told.memory_limit_bytes is not UNSET:
        limit = told.memory_limit_bytes
        yield "memory.limit", plain("memory limit", "none" if limit is None else size(limit))
    if told.memory_total_bytes is not None:
        yield "memory.total", plain("memory", size(told.memory_total_bytes))
    if told.memory_free_bytes is not None:
        yield "memory.free", level("free memory", told.memory_free_bytes, told.memory_total_bytes)
    for name, value in told.limits.items():
        yield f"limit.{name}", plain(f"ulimit {name}", "none" if value is None else str(value))


def _gpu(index: int, gpu: Gpu) -> Found:
    total = f", {size(gpu.total_bytes)}" if gpu.total_bytes else ""
    same = f"{gpu.name}{LOOSE}{gpu.uuid}" if gpu.name else None
    yield f"gpu.{index}", Field(what=f"GPU {index}", text=f"{gpu.name}{total}", same=same)
    yield f"gpu.{index}.free", level(f"free memory of GPU {index}", gpu.free_bytes, gpu.total_bytes)


def _disk(path: str, room: Room) -> Found:
    yield f"disk.{path}", level(f"free space of {path}", room.free_bytes, room.total_bytes)
    if room.total_bytes is not None:
        yield f"disk.{path}.total", plain(f"size of {path}", size(room.total_bytes))
