"""What a server's host shows beside its log, in `vigil up` and in `vigil diagnose NAME`: real collisions, kills, full disks."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from vigil_cli import COMMAND, FAKES, Vigil, free_port, until

EATER = "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"
GROUP = (sys.executable, str(FAKES / "in_cgroup.py"), "--limit", "60m", "--", sys.executable, "-c", EATER)
BINDS = (
    "import socket, sys, time\n"
    "print('loading', flush=True)\n"
    "while not sys.stdin.readline(): time.sleep(0.01)\n"
    "socket.create_server(('127.0.0.1', int(sys.argv[2])))\n"
)
LISTENS = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
    "print('up', flush=True); time.sleep(60)"
)
ENGINE = """
import subprocess, sys, time
print("INFO 11-30 10:00:00 [api_server.py:1] vLLM API server version 0.11.0", flush=True)
worker = subprocess.Popen(sys.argv[3:])
print(f"(EngineCore_DP0 pid={worker.pid}) INFO 11-30 10:00:01 [core.py:1] Initializing", flush=True)
worker.wait()
time.sleep(0.3)
"""
BUS = """
import mmap, os
handle = os.open("/dev/shm/nccl-a", os.O_RDWR | os.O_CREAT)
os.ftruncate(handle, 4 << 20)
memory = mmap.mmap(handle, 4 << 20)
for at in range(0, 4 << 20, 4096):
    memory[at] = 1
"""


def engine_that_is_killed(vigil: Vigil) -> Any:
    """Run `vigil up` of an engine whose worker meets the OOM killer."""
    command = (sys.executable, "-c", ENGINE, "--port", str(vigil.port), *GROUP)
    return vigil("up", "--json", "--name", "s", "--engine", "vllm", "--", *command)


def diagnose(vigil: Vigil, *options: str) -> Any:
    """Return what `vigil diagnose s --json` says: the cause's code, and the sentences on the host by when they hold."""
    story = json.loads(vigil("diagnose", "s", "--json", *options).out)
    told = {when: [one["text"] for one in story["host"] if one["when"] == when] for when in ("end", "now")}
    return story["cause"] and story["cause"]["code"], told


def ours(diagnosed: tuple[str, dict[str, list[str]]]) -> tuple[str, list[str]]:
    """Return what was diagnosed without the kernel's log: other tests have processes killed at the same time."""
    code, told = diagnosed
    return code, [text for texts in told.values() for text in texts if not text.startswith("the kernel's log")]


def evidence(verdict: dict[str, Any]) -> str:
    return "\n".join(one["text"] for one in verdict["evidence"])


# --- a port's holder


def test_port_that_is_taken_is_refused_with_who_holds_it(vigil: Vigil) -> None:
    vigil.up("--name", "first", fake=("--load", "0.1s", "--warmup", "0s", "--api-key", "hunter2hunter2"))
    second = vigil("up", "--json", "--name", "second", "--", *vigil.fake())
    assert second.word == "refused"
    assert str(FAKES / "server.py") in second.verdict["reason"]
    assert "which vigil started as first" in second.verdict["reason"]
    assert "hunter2" not in second.out + second.err


@pytest.fixture
def collided(vigil: Vigil) -> tuple[int, subprocess.Popen[str]]:
    """A server that found its port taken while it loaded; return the port, and the stranger that holds it."""
    port = free_port()
    begun = vigil.start(
        "up", "--name", "s", "--log", str(vigil.folder / "s.log"), "--", "sh", "-c",
        f'mkfifo go; exec "{sys.executable}" -c "$0" x {port} <>go', BINDS,
    )  # fmt: skip
    until(lambda: "loading" in (vigil.folder / "s.log").read_text() if (vigil.folder / "s.log").exists() else False)
    stranger = vigil.begin(
        sys.executable, "-c", LISTENS, str(port), "--token", "hunter2hunter2", stdout=subprocess.PIPE
    )
    assert stranger.stdout is not None
    assert stranger.stdout.readline() == "up\n"
    with (vigil.folder / "go").open("w") as go:
        go.write("\n")
    assert begun.end().rc == 4
    return port, stranger


def test_diagnosis_names_who_holds_the_port_now(vigil: Vigil, collided: tuple[int, subprocess.Popen[str]]) -> None:
    port, stranger = collided
    code, told = diagnose(vigil)
    assert code == "PORT001"
    (held,) = told["now"]
    assert held.startswith(f"port {port} is held by pid {stranger.pid} ({sys.executable} -c import socket")
    assert held.endswith(f", uid {os.geteuid()}")
    shown = vigil("diagnose", "s")
    assert "on its host now:" in shown.out
    assert "hunter2" not in shown.out


def test_diagnosis_through_a_reach_asks_that_host(vigil: Vigil, collided: tuple[int, subprocess.Popen[str]]) -> None:
    port, stranger = collided
    code, told = diagnose(vigil, "--reach", "env")
    assert (code, f"port {port} is held by pid {stranger.pid}" in told["now"][0]) == ("PORT001", True)


def test_diagnosis_says_when_nobody_holds_the_port_any_more(
    vigil: Vigil, collided: tuple[int, subprocess.Popen[str]]
) -> None:
    port, stranger = collided
    stranger.kill()
    stranger.wait()
    assert diagnose(vigil)[1]["now"] == [f"nobody listens on port {port} now"]


# --- the kernel's OOM killer


@pytest.fixture
def killing() -> None:
    """Skip where no memory group can be made, or the kernel's log may not be read."""
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("the kernel's log may not be read here")
    if subprocess.run(GROUP, check=False, stderr=subprocess.DEVNULL).returncode != -9:
        pytest.skip("no memory group can be made here")


@pytest.mark.usefixtures("killing")
def test_silent_exit_after_the_kernel_killed_the_engine_is_for_memory(vigil: Vigil) -> None:
    """vLLM exits 0 after its engine was killed, and says nothing of it."""
    done = engine_that_is_killed(vigil)
    assert (done.word, done.verdict["cause"]["code"]) == ("crashed", "MEM003")
    assert "Memory cgroup out of memory: Killed process" in evidence(done.verdict)
    assert "in the control group /" in evidence(done.verdict)


@pytest.mark.usefixtures("killing")
@pytest.mark.parametrize("watched", [True, False])
def test_diagnosis_finds_the_kernels_line_whether_or_not_somebody_watched(vigil: Vigil, *, watched: bool) -> None:
    engine_that_is_killed(vigil)
    if not watched:
        next(vigil.state.rglob("verdict.json")).unlink()
    code, told = diagnose(vigil)
    assert (code, len(told["end"])) == ("MEM003", 1)
    assert "Killed process" in told["end"][0]


@pytest.mark.usefixtures("killing")
def test_plain_kill_is_not_for_memory(vigil: Vigil) -> None:
    """Others were killed for memory a moment ago, as the fixture did."""
    done = vigil("up", "--json", "--name", "s", "--", "sh", "-c", "sleep 0.3; kill -9 $$")
    assert done.verdict["cause"]["code"] == "SIG001"
    assert diagnose(vigil)[0] == "SIG001"


# --- room


@pytest.fixture
def tiny(vigil: Vigil) -> Iterator[Path]:
    place = vigil.folder / "tiny"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("first", ["", "import time; time.sleep(0.4)\n"])
def test_full_disk_is_named_in_the_verdict_and_afterwards(vigil: Vigil, tiny: Path, first: str) -> None:
    writes = f"import os; os.write(os.open({str(tiny / 'w')!r}, os.O_CREAT | os.O_WRONLY), b'x' * (2 << 20))"
    code = f"{first}{writes}; open({str(tiny / 'v')!r}, 'w').write('x' * 9999)"
    done = vigil("up", "--json", "--name", "s", "--", sys.executable, "-c", code, f"--cache-dir={tiny}/cache")
    assert done.verdict["cause"]["code"] == "DISK001"
    full = f"{tiny} is full: 0 bytes of 1.0 MiB free ({tiny}/cache)"
    assert full in evidence(done.verdict)
    (tiny / "w").unlink()
    _, told = diagnose(vigil)
    assert full in told["end"]
    assert any(one.startswith(f"{tiny}: ") for one in told["now"])


def test_full_shared_memory_explains_a_bus_error_also_when_it_is_empty_again(vigil: Vigil) -> None:
    inside = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("nothing can be mounted here")
    up = [*COMMAND, "up", "--json", "--name", "s", "--", sys.executable, "-c", BUS]
    done = subprocess.run([*inside, *up], env=vigil.env, cwd=vigil.folder, check=False, capture_output=True)
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert (verdict["cause"]["code"], verdict["cause"]["sure"]) == ("SHM001", 0.95)
    code, told = diagnose(vigil)  # here /dev/shm is another one
    assert code == "SHM001"
    assert told["end"] == ["/dev/shm is full: 0 bytes of 1.0 MiB free"]


def test_what_was_kept_of_an_earlier_end_does_not_explain_a_later_one(vigil: Vigil) -> None:
    """Whoever watched saw a full /dev/shm at one end, and had left when what restarts the server came to another."""
    vigil("up", "--name", "s", "--", "sh", "-c", "sleep 0.3; kill -BUS $$")
    kept = next(vigil.state.rglob("verdict.json"))
    full = {"path": "/dev/shm", "total_bytes": 64 << 20, "free_bytes": 0}
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "seen": {"rooms": [full]}}))
    assert diagnose(vigil)[0] == "SHM001"
    an_hour_ago_s = time.time() - 3600
    os.utime(kept, (an_hour_ago_s, an_hour_ago_s))
    assert ours(diagnose(vigil)) == ("SIG001", [])


def test_death_that_has_nothing_to_do_with_the_host_says_nothing_of_it(vigil: Vigil) -> None:
    done = vigil(
        "up", "--json", "--name", "s", "--", "sh", "-c", "echo error: invalid argument: --no-such-flag; exit 1"
    )
    assert len(done.verdict["evidence"]) == 1
    assert ours(diagnose(vigil)) == ("FLAG001", [])


# --- a GPU's memory

DRIVER = """
#include <stdlib.h>
typedef struct { unsigned long long total, free, used; } M; typedef struct { unsigned gpu, memory; } U;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } P;
int nvmlInit_v2(void) { return 0; } int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)1; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, M *m) { m->total = 140ull << 30; m->used = 130ull << 30; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, U *u) { u->gpu = 40; return 0; }
int nvmlDeviceGetName(void *d, char *name, unsigned n) { name[0] = 'G'; name[1] = 0; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, P *p) {
    p[0].pid = atoi(getenv("HOLDER")); p[0].used = 120ull << 30; *n = 1; return 0; }
"""
RUNS_OUT = "import time; time.sleep(0.5); raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB.')"


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler to build a stand-in for the driver's library")
def test_holder_of_the_gpus_memory_is_named_where_it_ran_out(vigil: Vigil) -> None:
    (vigil.folder / "driver.c").write_text(DRIVER)
    library = vigil.folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, vigil.folder / "driver.c"], check=True)
    vigil.up("--name", "first")
    holder = json.loads(vigil("show", "first", "--json").out)["life"]["main"]["pid"]
    vigil.env.update(LD_LIBRARY_PATH=str(vigil.folder), HOLDER=str(holder))
    done = vigil("up", "--json", "--name", "s", "--", sys.executable, "-c", RUNS_OUT)
    held = f"GPU 0 (G): 130.0 GiB of 140.0 GiB in use: 120.0 GiB by pid {holder} ({sys.executable} {FAKES}/server.py"
    assert done.verdict["cause"]["code"] == "MEM001"
    assert held in evidence(done.verdict)
    code, told = diagnose(vigil)
    assert code == "MEM001"
    assert told["end"][0].startswith(held)
    assert told["end"][0].endswith("which vigil started as first")
    vigil("stop", "first")
    assert (
        "120.0 GiB by pid" in diagnose(vigil)[1]["now"][0]
    )  # the stand-in goes on to say so, of a process that is gone
