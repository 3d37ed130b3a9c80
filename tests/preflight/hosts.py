"""The host of a case of the lists: a plain one, with what the case says over it.

`gpus = 2` stands for two plain GPUs of 80 GiB; tables in `gpus` are laid over plain ones. Everything else is a `HostSeen`'s.
"""

from typing import Any

import msgspec

from vigil.preflight.seen_host import HostSeen

GIB = 1 << 30
GPU = {"name": "NVIDIA H100 80GB HBM3", "total_bytes": 80 * GIB, "free_bytes": 79 * GIB, "capability": [9, 0]}
PLAIN: dict[str, Any] = {
    "gpus": 8,
    "driver": "580.95.05",
    "driver_cuda": [13, 0],
    "program": {
        "path": "/opt/venv/bin/python",
        "python": True,
        "interpreter": "/opt/venv/bin/python",
        "torch": {"version": "2.9.1+cu128", "cuda": "12.8"},
    },
    "rooms": [
        {"path": "/", "places": ["/root/.cache"], "total_bytes": 900 * GIB, "free_bytes": 400 * GIB},
        {"path": "/dev/shm", "places": ["/dev/shm"], "total_bytes": 500 * GIB, "free_bytes": 499 * GIB},
    ],
    "limits": {"nofile": [1048576, 1048576]},
    "memory": {"total": 1000 * GIB, "free": 900 * GIB},
    "settings": {"token": True, "interfaces": ["eth0", "ib0", "lo"], "adapters": ["mlx5_0", "mlx5_1"]},
}


def host_of(told: dict[str, Any], version: str | None = None) -> HostSeen:
    """Return the host of a case."""
    laid = _over(PLAIN, told)
    gpus = laid["gpus"]
    tables = [{} for _ in range(gpus)] if isinstance(gpus, int) else gpus
    laid["gpus"] = [{"index": index, **GPU, **table} for index, table in enumerate(tables)]
    if version is not None and laid["program"] is not None:
        laid["program"] = {**laid["program"], "engine": version}
    return msgspec.convert(laid, HostSeen)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return one table over another; a list replaces a list."""
    found = dict(below)
    for name, value in above.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = _over(found[name], value) if both else value
    return found
