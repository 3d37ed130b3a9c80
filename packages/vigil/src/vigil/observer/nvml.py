"""The few calls of NVIDIA's management library (libnvidia-ml) that we need, by ctypes."""

import ctypes
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Type

Device = ctypes.c_void_p

_TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE
_NOT_TOLD = (1 << 64) - 1  # NVML_VALUE_NOT_AVAILABLE
_ROOM = 32
_TEXT_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE
_TRIES = 3


class Share(NamedTuple):
    """What one process has of a GPU's memory; None where the driver does not say."""

    pid: int
    used_bytes: Optional[int]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Load(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class ShareV1(ctypes.Structure):
    """`nvmlProcessInfo_v1_t`, which the call without a version writes."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]


class ShareV2(ctypes.Structure):
    """`nvmlProcessInfo_v2_t`, which both the second and the third version of the call write."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Nvml:
    """The library, opened. Raises OSError where it or a GPU is missing. `library`: its name, or an object with its calls."""

    def __init__(self, library: Any = "libnvidia-ml.so.1") -> None:
        self._library: Any = ctypes.CDLL(library) if isinstance(library, str) else library
        if self._library.nvmlInit_v2() != 0:
            raise OSError("nvmlInit failed")
        count = ctypes.c_uint()
        if self._library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0 or not count.value:
            raise OSError("no GPU")
        self.devices: List[Device] = []
        self._names: Dict[int, str] = {}
        for index in range(count.value):
            device = Device()
            if self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0:
                self.devices.append(device)
        self._layout: Type[ctypes.Structure] = ShareV2
        self._list: Optional[Callable[..., int]] = None
        for version, layout in (("_v3", ShareV2), ("_v2", ShareV2), ("", ShareV1)):
            call = getattr(self._library, "nvmlDeviceGetComputeRunningProcesses" + version, None)
            if call is not None:
                self._list, self._layout = call, layout
                break
        self._room = _ROOM

    def read_name(self, device: Device) -> str:
        """Return what a GPU is called, read once; empty where it is not told."""
        key = device.value or 0
        if key not in self._names:
            self._names[key] = self.read_text("nvmlDeviceGetName", device)
        return self._names[key]

    def read_memory(self, device: Device) -> Optional[Tuple[int, int]]:
        """Return the memory of a GPU that is in use, whoever uses it, and all of it, in bytes; None where it is not told."""
        memory = _Memory()
        done: int = self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
        return (int(memory.used), int(memory.total)) if done == 0 else None

    def read_free(self, device: Device) -> Optional[Tuple[int, int]]:
        """Return the memory of a GPU, total and free, in bytes; None where it is not told."""
        memory = _Memory()
        done: int = self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
        return (int(memory.total), int(memory.free)) if done == 0 else None

    def read_text(self, call: str, device: Device) -> str:
        """Return what a call like `nvmlDeviceGetName` says of a GPU; empty where it does not."""
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        ask = getattr(self._library, call, None)
        done = 1 if ask is None else ask(device, text, ctypes.c_uint(_TEXT_BYTES))
        return text.value.decode("utf-8", "replace") if done == 0 else ""

    def read_capability(self, device: Device) -> Optional[List[int]]:
        """Return the compute capability of a GPU, major and minor; None where it is not told."""
        ask = getattr(self._library, "nvmlDeviceGetCudaComputeCapability", None)
        major, minor = ctypes.c_int(), ctypes.c_int()
        done = 1 if ask is None else ask(device, ctypes.byref(major), ctypes.byref(minor))
        return [major.value, minor.value] if done == 0 else None

    def read_mig(self, device: Device) -> bool:
        """Tell whether a GPU is divided (Multi-Instance GPU): what is told of it as a whole holds for none of its parts."""
        ask = getattr(self._library, "nvmlDeviceGetMigMode", None)
        now, later = ctypes.c_uint(), ctypes.c_uint()
        return ask is not None and ask(device, ctypes.byref(now), ctypes.byref(later)) == 0 and now.value == 1

    def read_driver(self) -> str:
        """Return the driver's version; empty where it is not told."""
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        ask = getattr(self._library, "nvmlSystemGetDriverVersion", None)
        done = 1 if ask is None else ask(text, ctypes.c_uint(_TEXT_BYTES))
        return text.value.decode("utf-8", "replace") if done == 0 else ""

    def read_cuda(self) -> Optional[List[int]]:
        """Return the newest CUDA that the driver runs, major and minor; None where it is not told."""
        ask = getattr(self._library, "nvmlSystemGetCudaDriverVersion_v2", None)
        found = ctypes.c_int()
        done = 1 if ask is None else ask(ctypes.byref(found))
        return [found.value // 1000, found.value % 1000 // 10] if done == 0 and found.value > 0 else None

    def read_load(self, device: Device) -> Optional[float]:
        """Return the load of a GPU, 0 to 1; None where it is not told."""
        load = _Load()
        done: int = self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(load))
        return load.gpu / 100 if done == 0 else None

    def read_processes(self, device: Device) -> Optional[List[Share]]:
        """Return the processes that use a GPU; None where the driver does not tell."""
        if self._list is None:
            return None
        for _ in range(_TRIES):  # more may have come than there was room for
            count = ctypes.c_uint(self._room)
            found = (self._layout * self._room)()
            done = self._list(device, ctypes.byref(count), found)
            if done == 0:
                return [_share(found[index]) for index in range(min(count.value, self._room))]
            if done != _TOO_SMALL:
                return None
            self._room = max(self._room, count.value) * 2
        return None


def _share(found: Any) -> Share:
    return Share(found.pid, None if found.used == _NOT_TOLD else found.used)
