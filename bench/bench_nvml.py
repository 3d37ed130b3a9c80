"""What one reading of the GPUs costs on a real driver, and whether it tells our own memory from that of others.

Needs an NVIDIA GPU. A neighbour takes 512 MiB and then 512 MiB more, while we hold 1 GiB: our own number must stand still.
"""

# ruff: noqa: S101 - a bench that cannot run should say where
import ctypes
import os
import subprocess
import sys
import time

from vigil.observer.gpu import measure
from vigil.observer.nvml import Nvml

MIB = 1 << 20


class Cuda:
    """A context on the first GPU, by the driver's own library."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        assert self.cuda.cuInit(0) == 0
        assert self.cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0

    def take(self, size: int) -> None:
        """Take memory."""
        place = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(size)) == 0


def neighbour() -> None:
    """Be the neighbour: take more memory for each line that comes."""
    cuda = Cuda()
    for _ in sys.stdin:
        cuda.take(512 * MIB)
        print("taken", flush=True)


def main() -> None:
    """Print what is seen and what it costs."""
    nvml = Nvml()
    ours = frozenset({os.getpid()})
    print("before", measure(nvml, ours), "device sum", [nvml.read_used(device) for device in nvml.devices])
    Cuda().take(1024 * MIB)
    print("with 1 GiB of our own", measure(nvml, ours))
    with subprocess.Popen(
        [sys.executable, __file__, "neighbour"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        for number in (1, 2):
            print(file=other.stdin, flush=True)
            other.stdout.readline()
            print(f"neighbour {number}:", measure(nvml, ours), nvml.read_processes(nvml.devices[0]))
        print("as the neighbour sees itself:", measure(nvml, frozenset({other.pid})))
        begun = time.perf_counter()
        for _ in range(200):
            measure(nvml, ours)
        print(f"{(time.perf_counter() - begun) / 200 * 1000:.3f} ms a reading, {len(nvml.devices)} GPUs")
        other.stdin.close()


if __name__ == "__main__":
    neighbour() if "neighbour" in sys.argv else main()
