"""Memory of the watched processes on the host's GPUs, and the GPUs' load, through NVIDIA's own library where it is there."""

import threading
from typing import FrozenSet, Iterable, List, NamedTuple, Optional

from .nvml import Device, Nvml
from .process import read_stat

PATIENCE_S = 0.05


class GpuUse(NamedTuple):
    """`used_bytes`: memory of our processes over all GPUs, None where it is not told. `busy`: load of the busiest one, 0 to 1."""

    used_bytes: Optional[int]
    busy: Optional[float]


def measure(nvml: Nvml, pids: FrozenSet[int]) -> GpuUse:
    """Return what `pids` use now; the load is that of the GPUs as a whole."""
    used: Optional[int] = 0
    busy: Optional[float] = None
    for device in nvml.devices:
        ours = _used_by(nvml, device, pids)
        used = None if used is None or ours is None else used + ours
        load = nvml.read_load(device)
        busy = busy if load is None else max(busy or 0.0, load)
    return GpuUse(used, busy)


def _used_by(nvml: Nvml, device: Device, pids: FrozenSet[int]) -> Optional[int]:
    """Return the bytes of `pids` on a GPU, or None where they cannot be told from those of others.

    A driver may not say how much each has (WSL, MIG), and older ones name processes as the host numbers them, outside of our
    container: then all that is in use counts as ours where nobody else is on that GPU.
    """
    shares = nvml.read_processes(device)
    if shares is None:
        return None
    told: List[int] = [share.used_bytes for share in shares if share.pid in pids and share.used_bytes is not None]
    ours = [share for share in shares if share.pid in pids]
    if len(told) == len(ours) and (ours or all(_is_here(share.pid) for share in shares)):
        return sum(told) if shares else nvml.read_used(device)
    return nvml.read_used(device) if len(ours) == len(shares) else None


def _is_here(pid: int) -> bool:
    return read_stat(pid) is not None


class GpuReader:
    """Read the GPUs in a thread of its own: a call into a driver whose GPU fell off the bus may never come back."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        self._library = library
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._out = False
        self._over = False
        self._pids: FrozenSet[int] = frozenset()
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
            self._latest = measure(nvml, self._pids)
            self._answered.set()
