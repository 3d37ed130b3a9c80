"""Several processes of one job on this machine: started together, ended together."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, NoReturn

from vigil.errors import UsageError, VigilError

LOOK_EVERY_S = 0.1


def run_all(module: str, payload: str, count: int) -> None:
    """Run `python -m module payload` so many times, told apart by RANK; end all where one ends badly, and raise VigilError."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(count),
        "PARENT": str(os.getpid()),
    }
    program = [sys.executable, "-m", module, payload]
    processes = [subprocess.Popen(program, env={**shared, "RANK": str(rank)}) for rank in range(count)]
    try:
        while not any(each.poll() for each in processes) and any(each.poll() is None for each in processes):
            time.sleep(LOOK_EVERY_S)
        bad = [(rank, each.returncode) for rank, each in enumerate(processes) if each.poll()]
    finally:
        for each in processes:
            each.kill()
            each.wait()
    if bad:
        rank, code = min(bad, key=lambda one: one[1])  # that of a signal, where others only missed it
        raise VigilError(f"process {rank} of {count} {_how(code)}: what is finished is kept, the same command goes on")


def _how(code: int) -> str:
    """Return how a process ended: `vigil run` reads a signal in it (diagnosis/rules/SIG001.toml)."""
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def device_of(rank: int, count: int) -> Any:
    """Return this process's device: a GPU of its own where there are GPUs, else the CPU with its share of the cores."""
    import torch  # noqa: PLC0415 - seconds

    if torch.cuda.is_available():
        if torch.cuda.device_count() < count:
            raise UsageError(f"--nproc {count}: there are {torch.cuda.device_count()} GPUs")
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
        return device
    if count > 1:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))
    return torch.device("cpu")


def orphaned() -> bool:
    """Tell whether the process that started this one is gone (it was killed): nobody waits for the work any more."""
    parent = os.environ.get("PARENT")
    return parent is not None and os.getppid() != int(parent)


def fail(error: VigilError) -> NoReturn:
    """End this process with one line."""
    sys.exit(f"vigil: {error}")
