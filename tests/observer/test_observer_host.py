"""Counters of the kernel, the GPU, and the observer as a program on a bare Python."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vigil import facts, observer
from vigil.observer.gpu import GpuReader, GpuUse, look, use_of
from vigil.observer.nvml import Nvml, ShareV1, ShareV2
from vigil.observer.oom import OomCounter, counter_files, read_kills
from vigil.observer.process import Arrivals, read_stat

PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from observer.stdio import main; main()"


def test_oom_counter_reads_both_kinds_of_cgroup(tmp_path: Path) -> None:
    v1 = b"9:memory:/docker/abc\n1:cpu:/x\n0::/ignored\n"
    assert counter_files(v1, "/g")[:2] == ("/g/memory/docker/abc/memory.oom_control", "/g/memory/memory.oom_control")
    assert counter_files(b"0::/user.slice/x.scope\n", "/g")[0] == "/g/user.slice/x.scope/memory.events"
    events = tmp_path / "memory.events"
    events.write_text("low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert read_kills(str(events)) == 2
    assert read_kills("/proc/vmstat") is not None


def test_oom_kill_is_put_down_to_one_death(tmp_path: Path) -> None:
    cgroup = (Path("/proc/self/cgroup")).read_bytes()
    path = Path(counter_files(cgroup, str(tmp_path))[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("oom_kill 5\n")
    counter = OomCounter(os.getpid(), str(tmp_path))
    assert not counter.take()
    path.write_text("oom_kill 6\n")
    assert [counter.take(), counter.take()] == [True, False]


def test_gpu_is_none_where_there_is_no_library(poll: Callable[..., Any]) -> None:
    reader = GpuReader("libno-such-thing.so.1")
    assert [reader.ask(()), reader.ask(()), reader.ask(())] == [None, None, None]
    reader.close()


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler to build a stand-in for the driver's library")
def test_gpu_memory_of_our_processes_is_summed_and_the_busiest_counts(tmp_path: Path, poll: Callable[..., Any]) -> None:
    source = tmp_path / "nvml.c"
    source.write_text(
        "typedef struct { unsigned long long total, free, used; } M; typedef struct { unsigned gpu, memory; } U;\n"
        "int nvmlInit_v2(void) { return 0; } int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }\n"
        "int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(unsigned long)(i + 1); return 0; }\n"
        "int nvmlDeviceGetMemoryInfo(void *d, M *m) { m->used = 1000 * (unsigned long)d; return 0; }\n"
        "int nvmlDeviceGetUtilizationRates(void *d, U *u) { u->gpu = 40 * (unsigned long)d; return 0; }\n"
        "typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } P;\n"
        "int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, P *p) {\n"
        "  if (*n < 40) { *n = 40; return 7; }\n"
        "  for (unsigned i = 0; i < 40; i++) { p[i].pid = 100 + i; p[i].used = 1000 * (unsigned long)d + i; }\n"
        "  *n = 40; return 0; }\n"
    )
    library = tmp_path / "libnvml-stand-in.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    reader = GpuReader(str(library))
    use = poll(lambda: reader.ask([101, 139]))
    assert (use.used_bytes, use.busy) == (2 * (1 + 39) + 2000 + 4000, 0.8)
    reader.close()


# ruff: noqa: ARG002 - a stand-in takes what the driver takes
class Driver:
    """A driver with one GPU, on which `used` bytes are in use, by the processes `shares`. `version` is that of its list."""

    def __init__(self, shares: list[tuple[int, int]] | None, used: int = 900, version: str = "_v3") -> None:
        self._shares, self._used = shares, used
        if version != "none":
            setattr(self, "nvmlDeviceGetComputeRunningProcesses" + version, self._list)

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetMemoryInfo(self, device: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.used = self._used
        return 0

    def nvmlDeviceGetUtilizationRates(self, device: Any, load: Any) -> int:  # noqa: N802
        return 3  # not supported

    def _list(self, device: Any, count: Any, found: Any) -> int:
        if self._shares is None:
            return 3
        count._obj.value = len(self._shares)
        for place, (pid, used) in zip(found, self._shares, strict=False):
            place.pid, place.used = pid, used
        return 0


US, OTHER, NOWHERE = os.getpid(), os.getppid(), 1 << 31
UNTOLD = (1 << 64) - 1


@pytest.mark.parametrize(
    ("shares", "ours"),
    [
        ([(US, 300), (OTHER, 500)], 300),
        ([(OTHER, 500)], 0),
        ([], 900),  # nobody seems to use it
        ([(US, UNTOLD)], 900),
        ([(US, UNTOLD), (OTHER, 500)], None),
        ([(US, 300), (NOWHERE, 500)], 300),
        ([(NOWHERE, 500)], None),  # a pid of another namespace: it may be ours
        (None, None),
    ],
)
@pytest.mark.parametrize("version", ["_v3", "_v2", ""])
def test_gpu_memory_of_others_is_not_ours(shares: Any, ours: int | None, version: str) -> None:
    assert use_of(look(Nvml(Driver(shares, version=version))), frozenset({US})) == GpuUse(ours, None)


def test_gpu_memory_is_not_told_by_a_driver_that_lists_no_processes() -> None:
    assert use_of(look(Nvml(Driver([], version="none"))), frozenset({US})) == GpuUse(None, None)


def test_gpu_process_layouts_are_those_of_nvml_h() -> None:
    assert [(ctypes.sizeof(one), one.pid.offset, one.used.offset) for one in (ShareV1, ShareV2)] == [
        (16, 0, 8),
        (24, 0, 8),
    ]


def test_arrivals_are_new_processes_only(start: Any) -> None:
    arrivals = Arrivals()
    assert os.getpid() in arrivals.look(0.0)
    server = start("sleep", "60")
    assert server.pid in arrivals.look(0.1)
    assert server.pid not in arrivals.look(0.2)
    arrivals.forget(server.pid)
    arrivals.doubted = True
    assert server.pid in arrivals.look(0.3)


def test_process_name_with_brackets_is_read(start: Any, python: str) -> None:
    code = (
        "import ctypes,time; ctypes.CDLL(None).prctl(15, b') S 1 (', 0, 0, 0); print('up', flush=True); time.sleep(60)"
    )
    server = start(python, "-c", code, stdout=-1)
    server.stdout.readline()
    stat = read_stat(server.pid)
    assert stat
    assert (stat.comm, stat.ppid) == (") S 1 (", os.getpid())


def bare(folder: Path) -> Path:
    """The observer's modules alone, as they are sent to another host."""
    package = folder / "observer"
    package.mkdir()
    for module in Path(observer.__file__).parent.glob("*.py"):
        shutil.copy(module, package)
    return folder


def old_pythons() -> list[str]:
    """Interpreters of the oldest versions that must do, from PATH and from pyenv; else the one that runs the tests."""
    places = [shutil.which(f"python3.{minor}") for minor in (9, 10)]
    places += map(str, sorted(Path.home().glob(".pyenv/versions/3.[9]*/bin/python")))
    found = [
        place
        for place in places
        if place and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0
    ]
    return found[:2] or [sys.executable]


@pytest.mark.parametrize("name", old_pythons())
def test_program_runs_on_an_old_python_with_nothing_installed(name: str, tmp_path: Path, log: Path) -> None:
    log.write_bytes(b"hello\n")
    watch = {"do": "watch", "pid": os.getpid(), "log": str(log), "port": 9, "host": "127.0.0.1"}
    probe = {"do": "probe", "probe": "models", "path": "/", "every_s": 0.05, "timeout_s": 1}
    process = subprocess.Popen(
        [name, "-I", "-c", PROGRAM, str(bare(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    for command in (watch, probe, {"do": "token", "paths": ["/"], "timeout_s": 1}):
        process.stdin.write(json.dumps(command).encode() + b"\n")
    process.stdin.write(b"this is not JSON\n[1, 2]\n")
    process.stdin.flush()
    wanted = {"Reached", "MainStarted", "LogGrew", "ProbeAnswered", "TokenAnswered", "Sampled", "Ticked", "Troubled"}
    seen = set()
    for line in process.stdout:
        seen.add(type(msgspec.json.decode(line, type=facts.AnyFact)).__name__)
        if wanted <= seen:
            break
    process.stdin.close()
    process.stdout.read()
    process.stdout.close()
    assert process.wait(timeout=20) == 0
    assert process.stderr.read() == b""
    process.stderr.close()


def test_program_ends_when_nobody_reads_it(tmp_path: Path, log: Path) -> None:
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM, str(bare(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=write_end,
        stderr=subprocess.DEVNULL,
    )
    os.close(write_end)
    os.close(read_end)
    assert process.wait(timeout=20) == 0
    assert process.stdin
    process.stdin.close()


def test_program_with_a_full_pipe_still_ends_on_quit(tmp_path: Path, log: Path) -> None:
    log.write_bytes(b"a line that fills the pipe\n" * 100_000)
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM, str(bare(tmp_path))], stdin=subprocess.PIPE, stdout=write_end
    )
    os.close(write_end)
    assert process.stdin
    process.stdin.write(json.dumps({"do": "watch", "log": str(log), "log_offset": 0}).encode() + b"\n")
    process.stdin.flush()
    os.read(read_end, 1)
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    os.close(read_end)
