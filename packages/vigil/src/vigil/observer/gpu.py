"""Memory in use and load of the host's GPUs, through NVIDIA's own library where it is there."""

import ctypes
import threading
from typing import Any, List, NamedTuple, Optional

PATIENCE_S = 0.05


class GpuUse(NamedTuple):
    """`used_bytes`: memory in use, over all GPUs. `busy`: load of the busiest one, 0 to 1, where it is told."""

    used_bytes: int
    busy: Optional[float]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Load(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml:
    """The few calls of libnvidia-ml that we need. Raises OSError where the library or a GPU is missing."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        self._library: Any = ctypes.CDLL(library)
        if self._library.nvmlInit_v2() != 0:
            raise OSError("nvmlInit failed")
        count = ctypes.c_uint()
        if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0 or not count.value:
            raise OSError("no GPU")
        self._devices: List[ctypes.c_void_p] = []
        for index in range(count.value):
            device = ctypes.c_void_p()
            if self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0:
                self._devices.append(device)

    def read(self) -> Optional[GpuUse]:
        """Return what the GPUs use now, or None where no GPU tells (a MIG slice may not)."""
        used: Optional[int] = None
        busy: Optional[float] = None
        for device in self._devices:
            memory, load = _Memory(), _Load()
            if self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0:
                used = (used or 0) + memory.used
            if self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(load)) == 0:
                busy = max(busy or 0.0, load.gpu / 100)
        return None if used is None else GpuUse(used, busy)


class GpuReader:
    """Read the GPUs in a thread of its own: a call into a driver whose GPU fell off the bus may never come back."""

    def __init__(self, library: str = "libnvidia-ml.so.1") -> None:
        self._library = library
        self._asked = threading.Event()
        self._answered = threading.Event()
        self._out = False
        self._over = False
        self._latest: Optional[GpuUse] = None
        self._thread: Optional[threading.Thread] = None

    def ask(self) -> Optional[GpuUse]:
        """Return a new reading. None where there is none, or where the driver does not answer at once."""
        if self._out and not self._answered.is_set():
            return None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="vigil-gpu", daemon=True)
            self._thread.start()
        self._out = True
        self._latest = None
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
            self._latest = nvml.read()
            self._answered.set()
