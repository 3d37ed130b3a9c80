"""See the GPUs: what each is, its free memory and who holds the rest, the driver, and a newer libcuda beside it."""

import os
from typing import Any, Dict, List

from ..observer.holders import Holders
from ..observer.nvml import Nvml
from ..observer.process import age_s, read_stat
from ..survey.digest import read_small
from ..survey.machine import driver, gpus_of_proc

MOST_GPUS = 64
MOST_HOLDERS = 16
MOST_DEVICES = 4096
DEVICES = "/sys/bus/pci/devices"
# Whose accelerators there may be beside NVIDIA's, by the vendor's number on the bus; 03 are displays, 12 do nothing but work.
VENDORS = {"0x1002": "AMD", "0x8086": "Intel", "0x1da3": "Habana", "0x19e5": "Huawei"}
CLASSES = ("0x03", "0x12")
COMPAT = ("/usr/local/cuda/compat/libcuda.so.1", "/usr/local/cuda/compat/lib/libcuda.so.1")


def see() -> Dict[str, Any]:
    """Return `gpus` (none: there is no NVIDIA GPU here), `driver`, `driver_cuda`, `compat`, and whose `others` there are."""
    found: Dict[str, Any] = {"gpus": [], "driver": driver(), "driver_cuda": None, "compat": compat()}
    try:
        nvml = Nvml()
    except (OSError, AttributeError):
        found["gpus"] = [{"index": index, **one} for index, one in enumerate(gpus_of_proc())]
        return {**found, "others": [] if found["gpus"] else others()}
    found["driver"] = nvml.read_driver() or found["driver"]
    found["driver_cuda"] = nvml.read_cuda()
    holders = Holders()
    found["gpus"] = [_gpu(nvml, index, device, holders) for index, device in enumerate(nvml.devices[:MOST_GPUS])]
    return found


def _gpu(nvml: Nvml, index: int, device: Any, holders: Holders) -> Dict[str, Any]:
    memory = nvml.read_free(device)
    shares = sorted(nvml.read_processes(device) or (), key=lambda share: -(share.used_bytes or 0))[:MOST_HOLDERS]
    return {
        "index": index,
        "name": nvml.read_name(device),
        "uuid": nvml.read_text("nvmlDeviceGetUUID", device),
        "total_bytes": memory[0] if memory else None,
        "free_bytes": memory[1] if memory else None,
        "capability": nvml.read_capability(device),
        "divided": nvml.read_mig(device),
        "holders": [aged(holders.tell(share.pid, used_bytes=share.used_bytes)) for share in shares],
    }


def aged(holder: Dict[str, Any]) -> Dict[str, Any]:
    """Return a holder with how long it has been running, where its process can be seen."""
    stat = read_stat(holder["pid"]) if holder["pid"] else None
    return {**holder, "age_s": round(age_s(stat.start_ticks), 1) if stat else None}


def others() -> List[str]:
    """Return whose GPUs and accelerators are on the bus beside NVIDIA's."""
    try:
        devices = os.listdir(DEVICES)[:MOST_DEVICES]
    except OSError:
        return []
    words = {(_word(one, "class")[:4], _word(one, "vendor")) for one in devices}
    return sorted({VENDORS[vendor] for kind, vendor in words if kind in CLASSES and vendor in VENDORS})


def _word(device: str, name: str) -> str:
    return (read_small(os.path.join(DEVICES, device, name), 32) or b"").decode("ascii", "replace").strip()


def compat() -> str:
    """Return a libcuda that NVIDIA's images put before the driver's own, so that an older driver runs newer CUDA; or nothing."""
    found: List[str] = [path for path in COMPAT if os.path.exists(path)]
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        path = os.path.join(folder, "libcuda.so.1")
        if "compat" in folder and os.path.exists(path):
            found.append(path)
    return found[0] if found else ""
