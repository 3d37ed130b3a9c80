"""The machine that a start found: driver, GPUs, kernel, memory, disks, limits."""

import os
import platform
import re
import resource
from typing import Any, Dict, Iterable, List, Optional

from ..observer.life import read_boot_id
from ..observer.nvml import Nvml
from ..observer.oom import CGROUP_ROOT
from ..observer.process import read_bytes

MOST_GPUS = 64
PROC_NVIDIA = "/proc/driver/nvidia"
_DRIVER = re.compile(rb"Kernel Module(?: for \S+)?\s+(\d[\w.-]{1,30})")
_FIELD = re.compile(rb"^(Model|GPU UUID):\s*(.{1,100}?)\s*$", re.MULTILINE)
_MEMORY = re.compile(rb"^(MemTotal|MemAvailable|SwapFree):\s+(\d+) kB", re.MULTILINE)
LIMITS = ("NOFILE", "NPROC", "MEMLOCK", "STACK", "AS", "CORE")
_NONE = 1 << 60  # a limit of cgroup v1 that is none


def basics() -> Dict[str, Any]:
    """Return what is known at once: kernel, C library, boot, memory, limits."""
    memory = {
        name.decode(): int(value) << 10 for name, value in _MEMORY.findall(read_bytes("/proc/meminfo", 65536) or b"")
    }
    return {
        "boot_id": read_boot_id(),
        "host": os.uname().nodename,
        "kernel": os.uname().release,
        "glibc": _glibc(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_free_bytes": memory.get("MemAvailable"),
        "memory_limit_bytes": memory_limit(),
        "limits": {name.lower(): _limit(name) for name in LIMITS},
        "driver": driver(),
    }


def _glibc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        return " ".join(platform.libc_ver())


def _limit(name: str) -> Optional[int]:
    soft = resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0]
    return None if soft == resource.RLIM_INFINITY else soft


def memory_limit(root: str = CGROUP_ROOT, cgroup: Optional[bytes] = None) -> Optional[int]:
    """Return the lowest memory limit of our control groups, v1 and v2, in bytes; None where there is none."""
    found: List[int] = []
    for line in (
        (read_bytes("/proc/self/cgroup", 65536) or b"" if cgroup is None else cgroup)
        .decode("utf-8", "replace")
        .splitlines()
    ):
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = (os.path.join(root, "memory"), "memory.limit_in_bytes") if controllers else (root, "memory.max")
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts) + 1):
            value = (read_bytes(os.path.join(base, *parts[:depth], name), 64) or b"").strip()
            if value.isdigit() and int(value) < _NONE:
                found.append(int(value))
    return min(found) if found else None


def driver(folder: str = PROC_NVIDIA) -> Optional[str]:
    """Return the version of NVIDIA's kernel driver, or None where there is none."""
    found = _DRIVER.search(read_bytes(os.path.join(folder, "version"), 4096) or b"")
    return found.group(1).decode("ascii", "replace") if found else None


def gpus(library: Any = "libnvidia-ml.so.1", folder: str = PROC_NVIDIA) -> List[Dict[str, Any]]:
    """Return the GPUs, with their memory where the library tells it; from /proc alone where it is missing."""
    try:
        nvml = Nvml(library)
    except (OSError, AttributeError):
        return gpus_of_proc(folder)
    found = []
    for device in nvml.devices[:MOST_GPUS]:
        memory = nvml.read_free(device)
        found.append({
            "name": nvml.read_text("nvmlDeviceGetName", device),
            "uuid": nvml.read_text("nvmlDeviceGetUUID", device),
            "total_bytes": memory[0] if memory else None,
            "free_bytes": memory[1] if memory else None,
        })  # fmt: skip
    return found


def gpus_of_proc(folder: str = PROC_NVIDIA) -> List[Dict[str, Any]]:
    """Return the GPUs as the kernel's driver lists them, without their memory."""
    listing = os.path.join(folder, "gpus")
    try:
        names = sorted(os.listdir(listing))[:MOST_GPUS]
    except OSError:
        return []
    found = []
    for name in names:
        told = dict(_FIELD.findall(read_bytes(os.path.join(listing, name, "information"), 4096) or b""))
        words = {
            key: told.get(field, b"").decode("utf-8", "replace")
            for key, field in (("name", b"Model"), ("uuid", b"GPU UUID"))
        }
        found.append({**words, "total_bytes": None, "free_bytes": None})
    return found


def disks(places: Iterable[str]) -> Dict[str, Any]:
    """Return free and total bytes by mount, for the folders that a start may fill; each mount is named by the first of them."""
    found: Dict[str, Any] = {}
    seen = set()
    for place in places:
        path = _existing(place)
        try:
            device, room = os.stat(path).st_dev, os.statvfs(path)
        except OSError:
            continue
        if device not in seen:
            seen.add(device)
            free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
            found[place[:500]] = {
                "free_bytes": free,
                "total_bytes": total,
                "free_files": room.f_favail if room.f_files else None,
            }
    return found


def _existing(path: str) -> str:
    """Return the nearest folder above a path that is there: a cache may not have been made yet."""
    while path not in {"", "/"} and not os.path.exists(path):
        path = os.path.dirname(path)
    return path or "/"
