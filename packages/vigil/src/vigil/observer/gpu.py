"""Memory of the watched processes on the host's GPUs, and the GPUs' load, through NVIDIA's own library where it is there."""

import threading
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Tuple

from .nvml import Nvml, Share
from .process import read_stat

PATIENCE_S = 0.05
MOST_HOLDERS = 16


class GpuUse(NamedTuple):
    """`used_bytes`: memory of our processes over all GPUs, None where it is not told. `busy`: load of the busiest one, 0 to 1."""

    used_bytes: Optional[int]
    busy: Optional[float]


class Gpu(NamedTuple):
    """One GPU at one moment. `memory`: used and total bytes; `shares` None: the driver does not list processes."""

    name: str
    memory: Optional[Tuple[int, int]]
    shares: Optional[List[Share]]
    load: Optional[float]


def look(nvml: Nvml) -> List[Gpu]:
    """Return every GPU as it is now."""
    found = []
    for device in nvml.devices:
        shares = nvml.read_processes(device)
        found.append(Gpu(nvml.read_name(device), nvml.read_memory(device), shares, nvml.read_load(device)))
    return found


def use_of(gpus: Iterable[Gpu], pids: FrozenSet[int]) -> GpuUse:
    """Return what `pids` use; the load is that of the GPUs as a whole."""
    used: Optional[int] = 0
    busy: Optional[float] = None
    for gpu in gpus:
        ours = _used_by(gpu, pids)
        used = None if used is None or ours is None else used + ours
        busy = busy if gpu.load is None else max(busy or 0.0, gpu.load)
    return GpuUse(used, busy)


def _used_by(gpu: Gpu, pids: FrozenSet[int]) -> Optional[int]:
    """Return the bytes of `pids` on a GPU, or None where they cannot be told from those of others.

    A driver may not say how much each has (WSL, MIG), and older ones name processes as the host numbers them, outside of our
    container: then all that is in use counts as ours where nobody else is on that GPU.
    """
    if gpu.shares is None:
        return None
    used = gpu.memory[0] if gpu.memory else None
    told: List[int] = [share.used_bytes for share in gpu.shares if share.pid in pids and share.used_bytes is not None]
    ours = [share for share in gpu.shares if share.pid in pids]
    if len(told) == len(ours) and (ours or all(_is_here(share.pid) for share in gpu.shares)):
        return sum(told) if gpu.shares else used
    return used if len(ours) == len(gpu.shares) else None


def _is_here(pid: int) -> bool:
    return read_stat(pid) is not None


def tell(gpus: Iterable[Gpu], pids: FrozenSet[int], who: Callable[..., Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return who holds the memory of each GPU, as `GpuMemory`s; `who` describes a process that is none of `pids`."""
    found = []
    for index, gpu in enumerate(gpus):
        shares = sorted(gpu.shares or (), key=lambda share: -(share.used_bytes or 0))[:MOST_HOLDERS]
        found.append({
            "index": index,
            "name": gpu.name,
            "used_bytes": gpu.memory[0] if gpu.memory else None,
            "total_bytes": gpu.memory[1] if gpu.memory else None,
            "holders": [
                {"pid": share.pid, "used_bytes": share.used_bytes, "ours": True}
                if share.pid in pids
                else who(share.pid, used_bytes=share.used_bytes)
                for share in shares
            ],
        })  # fmt: skip
    return found


class GpuReader:
    """Read the GPUs in a thread of its own: a call into a driver whose GPU fell off the bus may never come back."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        self._library = library
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._out = False
        self._over = False
        self._pids: FrozenSet[int] = frozenset()
        self._seen: Tuple[List[Gpu], FrozenSet[int]] = ([], frozenset())
        self._latest: Optional[GpuUse] = None
        self._thread: Optional[threading.Thread] = None

    def ask(self, pids: Iterable[int]) -> Optional[GpuUse]:
        """Return a new reading for `pids`. None where there is none, or where the driver does not answer at once."""
        if self._out and not self._answered.is_set():
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="vigil-gpu", daemon=True)
            self._thread.start()
        self._out = True
        self._latest = None
        self._pids = frozenset(pids)
        self._answered.clear()
        self._asked.set()
        self._answered.wait(PATIENCE_S)
        return self._latest

    @property
    def seen(self) -> Tuple[List[Gpu], FrozenSet[int]]:
        """Return the GPUs at the last reading, and the pids that it was for; none where there was no reading."""
        return self._seen

    def close(self) -> None:
        """End the thread; one that hangs in the driver is left to it."""
        self._over = True
        self._asked.set()

    def _run(self) -> None:
        try:
            nvml = Nvml(self._library)
        except (OSError, AttributeError):
            return
        while True:
            self._asked.wait()
            self._asked.clear()
            if self._over:
                return
            pids = self._pids
            gpus = look(nvml)
            self._seen = (gpus, pids)
            self._latest = use_of(gpus, pids)
            self._answered.set()
