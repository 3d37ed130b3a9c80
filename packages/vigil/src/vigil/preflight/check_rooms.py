"""Room where the server writes: caches, /tmp, its folder, and /dev/shm, through which its ranks talk."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.ranks import ranks_of
from vigil.preflight.seen_host import HostSeen, RoomSeen
from vigil.screen import plain, size

SHM = "/dev/shm"  # noqa: S108 - a name, not a file
SHM_BYTES_EACH = 64 << 20
"""Docker gives 64 MiB, with which NCCL is known to fail from two ranks on (its own docs: --shm-size=1g and more)."""
LOW_BYTES = 1 << 30
"""Compiled kernels and graphs take hundreds of MiB in the caches."""


def check_rooms(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find file systems without room, and a /dev/shm that is too small for the ranks."""
    if host.outside:
        return
    for room in host.rooms or ():
        if room.path == SHM:
            yield from _shm(command, room)
        elif room.free_bytes < LOW_BYTES or room.free_files == 0:
            yield _full(room)


def _full(room: RoomSeen) -> Finding:
    what = "no files more" if room.free_files == 0 else f"{size(room.free_bytes)} of {size(room.total_bytes)} free"
    places = ", ".join(plain(one, 120) for one in room.places[:4])
    return Finding(
        code="DISK001",
        severity=Severity.WARNING,
        text=f"{plain(room.path, 200)} has {what}; the server writes there: {places}",
        advice="make room, or put the caches elsewhere (XDG_CACHE_HOME, HF_HOME, VLLM_CACHE_ROOT, TRITON_CACHE_DIR, TMPDIR)",
        seen="statvfs",
    )


def _shm(command: Command, room: RoomSeen) -> Iterator[Finding]:
    ranks = ranks_of(command)
    if ranks is None or ranks.here < 2 or room.free_bytes > SHM_BYTES_EACH * ranks.here:  # noqa: PLR2004
        return
    yield Finding(
        code="SHM001",
        severity=Severity.WARNING,
        text=f"{SHM} has {size(room.free_bytes)} of {size(room.total_bytes)} free, and {ranks.here} ranks talk through it",
        advice="give it more: docker run --shm-size=16g (or --ipc=host), or mount -o remount,size=16g /dev/shm",
        seen="statvfs",
    )
