"""NVIDIA's driver against the CUDA that the installed torch was built for."""

import re
from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.seen_host import HostSeen
from vigil.preflight.visible import runs_here
from vigil.screen import plain

# The oldest driver that runs any CUDA of a major version: NVIDIA, "CUDA Compatibility", "Minor Version Compatibility", table 1
# (docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html).
MINIMUM_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580,)}
OLDEST = {11: "450.80.02", 12: "525.60.13", 13: "580"}


def check_driver(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find a driver that is too old for torch's CUDA: torch would find no GPU.

    A newer libcuda that is put before the driver's own (NVIDIA's images do) may make up for it, on some GPUs.
    """
    torch = host.program.torch if host.program is not None else None
    if torch is None or not torch.cuda or not host.driver or not host.gpus or not runs_here(host):
        return
    if (command.text("--device") or "").startswith("cpu"):
        return
    major = _numbers(torch.cuda)[:1]
    least = MINIMUM_DRIVER.get(major[0]) if major else None
    if least is None or _numbers(host.driver)[: len(least)] >= least:
        return
    runs = f" (it runs CUDA {host.driver_cuda[0]}.{host.driver_cuda[1]} at most)" if host.driver_cuda else ""
    helped = f"; {plain(host.compat, 200)} may make up for it" if host.compat else ""
    yield Finding(
        code="CUDA001",
        severity=Severity.WARNING if host.compat else Severity.FATAL,
        text=f"NVIDIA's driver is {plain(host.driver, 40)}{runs}, and torch {plain(torch.version, 40)} was built for "
        f"CUDA {plain(torch.cuda, 20)}, which needs {OLDEST[major[0]]} or newer{helped}",
        advice=f"update the driver to {OLDEST[major[0]]} or newer, or install a torch (and engine) built for an older CUDA",
        seen="the driver's own word; torch/version.py; NVIDIA's table of CUDA compatibility",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d{1,6}", version))
