"""What the host shows beside the log when a process ends: the kernel's log, room on disks, holders of ports and GPUs."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from test_observer_attempts import write_life

from vigil import fact_parts, facts
from vigil.observer import holders
from vigil.observer.gpu import Gpu, tell
from vigil.observer.holders import Holders
from vigil.observer.kmsg import Kmsg, Record, ask, lines_of, parse_record
from vigil.observer.nvml import Share
from vigil.observer.rooms import RoomLook, places_of, see_rooms

FAKES = Path(__file__).parents[1] / "fakes"
EATER = "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"
CONTAINER = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,oom_memcg=/docker/a,task_memcg=/docker/a,"
    "task=python3,pid=77,uid=0"
)
KILLED = "Memory cgroup out of memory: Killed process 77 (python3) total-vm:9kB, anon-rss:8kB, file-rss:1kB, UID:0 pgtables:1kB"
LISTEN = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
    "print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of one MiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


# --- the kernel's log


@pytest.mark.parametrize(
    ("text", "pid", "name"),
    [
        (KILLED, 77, "python3"),
        ("Out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:9kB, anon-rss:8kB", 4242, "VLLM::EngineCor"),
        ("Killed process 12 (a) b), UID 0, total-vm:1kB", 12, "a) b"),  # Linux 3.10
        ("Killed process 12 (a) b) total-vm:1kB", 12, "a) b"),
        ("Memory cgroup out of memory: Killed process 7 (x) (y)", 7, ""),
    ],
)
def test_kill_for_memory_names_the_process(text: str, pid: int, name: str) -> None:
    (line,) = lines_of([Record(5.0, text)], end_s=5.25)
    assert (line["what"], line["pid"], line["name"], line["ago_s"]) == ("oom_kill", pid, name, 0.25)


def test_kill_in_a_container_names_its_control_group() -> None:
    (line,) = lines_of([Record(5.0, CONTAINER), Record(5.0, KILLED)])
    assert line["group"] == "/docker/a"
    (other,) = lines_of([Record(5.0, CONTAINER), Record(5.0, KILLED.replace("77", "78"))])
    assert other["group"] == ""


@pytest.mark.parametrize(
    ("text", "pid"),
    [
        ("NVRM: Xid (PCI:0000:1b:00): 79, pid=4242, GPU has fallen off the bus.", 4242),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", None),
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=12345, name=python3, Ch 00000008, MMU Fault", 12345),
        ("NVRM: Xid (PCI:0000:01:00): 48, Double Bit ECC Error", None),
    ],
)
def test_error_of_a_gpu_names_the_process_where_the_driver_does(text: str, pid: int | None) -> None:
    (line,) = lines_of([Record(5.0, text)])
    assert (line["what"], line["pid"], line["text"]) == ("xid", pid, text)


def test_what_a_program_wrote_to_the_kernels_log_is_no_word_of_the_kernel() -> None:
    assert parse_record(b"6,1,5000000,-;" + KILLED.encode() + b"\n SUBSYSTEM=x\n") == Record(5.0, KILLED)
    assert parse_record(b"12,1,5000000,-;" + KILLED.encode() + b"\n") is None
    assert parse_record(b"no record") is None


@pytest.mark.parametrize("path", ["/no/such/device", "/dev/null", "/"])
def test_kernels_log_that_cannot_be_read_says_nothing(path: str) -> None:
    log = Kmsg(whole=True, path=path)
    assert log.read() == []
    log.close()


def test_tools_that_may_read_the_kernels_log_are_asked(tmp_path: Path) -> None:
    tool = tmp_path / "journalctl"
    tool.write_text(f"#!/bin/sh\necho '-- Boot x --'\necho '[   12.500000] gpu7 kernel: {KILLED}'\necho '[13.0] x'\n")
    tool.chmod(0o755)
    assert ask([str(tool)]) == [Record(12.5, KILLED), Record(13.0, "x")]
    assert ask(["/no/such/tool"]) == ask(["false"]) == []


def test_kill_of_a_worker_is_told_before_its_end_and_the_main_process_s(watching: Any, start: Any, python: str) -> None:
    """The worker alone is in a small memory group; the main process ends by itself a while later, and says nothing."""
    worker = [python, str(FAKES / "in_cgroup.py"), "--limit", "60m", "--", python, "-c", EATER]
    if subprocess.run(worker, check=False, stderr=subprocess.DEVNULL).returncode != -9:
        pytest.skip("no memory group can be made here")
    if not Path("/dev/kmsg").exists() or not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("the kernel's log may not be read here")
    code = f"import subprocess, time; time.sleep(0.5); subprocess.run({worker!r}); time.sleep(0.3)"
    server = start(python, "-c", code)
    watching.watch(pid=server.pid)
    said = watching.wait(facts.KernelSaid)
    gone = watching.wait(facts.MainExited)
    line = said.lines[-1]
    assert (line.what, line.ours, line.name) == ("oom_kill", True, Path(python).name)
    assert f"Killed process {line.pid} ({line.name})" in line.text
    assert watching.order(said, gone) == sorted(watching.order(said, gone))


def test_kill_of_a_stranger_is_not_called_ours(watching: Any, start: Any, python: str) -> None:
    server = start(python, "-c", "import time; time.sleep(60)")
    watching.watch(pid=server.pid)
    watching.wait(facts.MainStarted)
    stranger = [python, str(FAKES / "in_cgroup.py"), "--limit", "60m", "--", python, "-c", EATER]
    if subprocess.run(stranger, check=False, stderr=subprocess.DEVNULL).returncode != -9:
        pytest.skip("no memory group can be made here")
    server.kill()
    watching.wait(facts.MainExited)
    assert [line.ours for said in watching.all(facts.KernelSaid) for line in said.lines if "(python" in line.text] == [
        None
    ]


# --- room


def test_room_is_told_of_each_file_system_once(tiny: Path, tmp_path: Path) -> None:
    (tiny / "model").mkdir()
    rooms = [
        msgspec.convert(one, fact_parts.Room) for one in see_rooms([str(tiny / "model"), str(tiny), str(tmp_path)])
    ]
    assert rooms[0].path == str(tiny)
    assert rooms[0].places == (str(tiny / "model"), str(tiny))
    assert (rooms[0].total_bytes, len(rooms)) == (1 << 20, 2)


def test_file_system_that_nobody_writes_to_is_not_full(tiny: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
    assert see_rooms([str(tiny)]) == []


def test_places_are_what_the_command_names_and_the_caches() -> None:
    env = {"HOME": "/home/u", "HF_HOME": "/data/hf", "TMPDIR": "/scratch"}
    words = ("python", "-m", "sglang.launch_server", "--model-path", "~/m", "--port=30000", "--log=./x.log", "/w/y")
    places = places_of(words, env, "/work", ["/logs"])
    assert places == [
        "/work", "/home/u/m", "/work/x.log", "/w/y", "/data/hf", "/home/u/.cache", "/scratch", "/dev/shm", "/logs",
    ]  # fmt: skip


def test_room_is_told_when_the_process_ends(watching: Any, start: Any, python: str, tiny: Path) -> None:
    server = start(python, "-c", "input()", cwd=tiny, stdin=subprocess.PIPE)
    watching.watch(pid=server.pid)
    watching.wait(facts.MainStarted)
    with pytest.raises(OSError, match="No space"):
        (tiny / "weights").write_bytes(b"x" * (2 << 20))
    assert watching.all(facts.RoomSeen) == []  # nothing is looked at while it lives
    server.stdin.close()
    gone = watching.wait(facts.MainExited)
    (seen,) = watching.all(facts.RoomSeen)
    assert watching.facts.index(seen) < watching.facts.index(gone)
    assert next(room.free_bytes for room in seen.rooms if room.path == str(tiny)) == 0


def test_key_that_looks_like_a_path_is_no_place(watching: Any, start: Any, python: str) -> None:
    server = start(python, "-c", "input()", "--api-key", "/tmp/hunter2hunter2", stdin=subprocess.PIPE)
    watching.watch(pid=server.pid)
    watching.wait(facts.MainStarted)
    server.stdin.close()
    assert watching.wait(facts.RoomSeen).rooms
    assert "hunter2" not in str(watching.facts)


def test_file_system_that_does_not_answer_is_not_waited_for_twice(poll: Any) -> None:
    looks, gate = RoomLook(), threading.Event()

    def hung() -> Iterator[str]:
        gate.wait()
        yield "/"

    assert looks.within(hung(), 0.01) == []  # type: ignore[arg-type]
    assert looks.within(["/"], 5.0) == []
    gate.set()
    assert poll(lambda: looks.within(["/"], 5.0))


# --- holders


@pytest.fixture
def squatter(start: Any, python: str) -> tuple[int, int]:
    """Return pid and port of a stranger that listens, and was given a key."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    held = start(python, "-c", LISTEN, str(port), "--api-key", "hunter2hunter2", stdout=subprocess.PIPE)
    assert held.stdout.readline() == b"up\n"
    return held.pid, port


def test_holder_of_the_port_is_told_with_its_command_before_the_port(
    watching: Any, start: Any, squatter: tuple[int, int]
) -> None:
    pid, port = squatter
    server = start("sleep", "60")
    watching.watch(pid=server.pid, port=port, host="127.0.0.1")
    opened = watching.wait(facts.PortOpened)
    (held,) = watching.all(facts.PortHeld)
    (holder,) = held.holders
    assert watching.facts.index(held) < watching.facts.index(opened)
    assert (held.port, holder.pid, holder.uid) == (port, pid, os.geteuid())
    assert holder.argv[-3:] == (str(port), "--api-key", "***")
    assert "hunter2" not in str(watching.facts)


def test_holder_that_vigil_started_has_its_name(squatter: tuple[int, int], tmp_path: Path) -> None:
    pid, port = squatter
    (tmp_path / "servers" / "first").mkdir(parents=True)
    write_life(tmp_path / "servers" / "first" / "current", pid, tmp_path / "log", os.getpid())
    known = Holders(servers=str(tmp_path / "servers"))
    assert [(one["pid"], one["server"]) for one in known.of_port(port)] == [(pid, "first")]
    assert Holders(servers=str(tmp_path / "none")).of_port(port)[0]["server"] == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_holder_of_another_user_is_told_by_its_uid(squatter: tuple[int, int]) -> None:
    """As nobody, who may not look into what root runs."""
    _, port = squatter
    source = str(Path(holders.__file__).parents[1])
    code = (
        f"import os, sys; sys.path.insert(0, {source!r}); from observer.holders import Holders; os.setgroups([]); "
        f"os.setgid(65534); os.setuid(65534); print(Holders(servers='/none').of_port({port}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[{'pid': None, 'uid': 0}]"


def test_port_of_nobody_has_no_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    assert Holders().of_port(port) == []


def test_gpu_memory_is_told_by_holder_and_ours_is_marked() -> None:
    ours, other = os.getpid(), os.getppid()
    gpu = Gpu("H200", (900, 1000), [Share(ours, 100), Share(other, 700), Share(1 << 31, None)], 0.5)
    (told,) = [msgspec.convert(one, fact_parts.GpuMemory) for one in tell([gpu], frozenset({ours}), Holders().tell)]
    assert (told.index, told.used_bytes, told.total_bytes) == (0, 900, 1000)
    assert [(one.pid, one.ours, one.used_bytes) for one in told.holders] == [
        (other, False, 700), (ours, True, 100), (1 << 31, False, None),
    ]  # fmt: skip
    assert told.holders[0].name
    assert told.holders[1].argv == ()
