"""The state folder: names, many at once, full and broken disks, jumping clocks."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import RefusedError, wait_for

MANY = 50
SOME = 20
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="mounting needs root")


@pytest.fixture
def small_disk(host: Any) -> Iterator[Path]:
    """A disk of 64 KiB for the state folder alone."""
    host.state.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "vigil-test", host.state], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield host.state
    for name in [one["name"] for one in host.ask("list")["servers"]]:
        with contextlib.suppress(RefusedError):
            host.stop(name, grace_s=0)
    subprocess.run(["umount", host.state], check=True)


@contextlib.contextmanager
def noted(refusals: list[str]) -> Iterator[None]:
    """Note the kind of a refusal that may or may not come."""
    try:
        yield
    except RefusedError as error:
        refusals.append(error.kind)


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def test_many_starts_of_one_name_have_one_winner(host: Any) -> None:
    desks = [host.open("launch", spec=host.spec("sleep", "60")) for _ in range(MANY)]
    answers, refusals = [], []
    for desk in desks:
        try:
            answers.append(host.read(desk))
        except RefusedError as error:
            refusals.append(str(error))
    assert (len(answers), len(refusals)) == (1, MANY - 1)
    pid = answers[0]["life"]["main"]["pid"]
    assert set(refusals) == {
        f"the name s1 is in use by a running server (pid {pid}); choose another --name, or: vigil stop s1"
    }
    assert len(host.processes()) == 2
    host.stop()


def test_many_starts_of_a_made_name_get_one_each(host: Any) -> None:
    desks = [
        host.open("launch", spec=host.spec("sleep", "60", name=None, made_name="sglang-30000")) for _ in range(SOME)
    ]
    names = {host.read(desk)["name"] for desk in desks}
    assert names == {"sglang-30000"} | {f"sglang-30000-{number}" for number in range(2, SOME + 1)}
    assert len(host.processes()) == 2 * SOME
    stops = [host.open("stop", name=name, grace_s=5, by="t") for name in sorted(names)]
    assert all(not host.read(stop)["alive"] for stop in stops)
    assert not host.processes()


def test_made_name_of_a_server_that_ended_is_used_again(host: Any) -> None:
    first = host.launch("true", name=None, made_name="m")
    host.ended(first)
    second = host.launch("true", name=None, made_name="m")
    assert (first["name"], second["name"]) == ("m", "m")
    host.ended(second)


@pytest.mark.parametrize("made", ["../x", "", "é", "x" * 300, "-a"])
def test_made_name_that_is_no_name_is_mended(host: Any, made: str) -> None:
    for expected in ("", "-2"):
        name = host.launch("sleep", "60", name=None, made_name=made)["name"]
        assert name == ("x" * 58 if made.startswith("x") else "server") + expected
    for one in host.ask("list")["servers"]:
        host.stop(one["name"], grace_s=0)


def test_stop_that_races_with_a_start_ends_it_or_finds_nothing(host: Any) -> None:
    for index in range(10):
        start = host.open("launch", spec=host.spec("sleep", "60", name=f"r{index}"))
        stop = host.open("stop", name=f"r{index}", grace_s=1, by="t")
        host.read(start)
        refusals: list[str] = []
        with noted(refusals):
            assert not host.read(stop)["alive"]
        if refusals:
            assert refusals == ["unknown"]
            assert not host.stop(f"r{index}")["already"]
    assert not host.processes()


def test_unknown_name_is_refused_with_the_known_ones(host: Any) -> None:
    host.ended(host.launch("true", name="known"))
    with pytest.raises(RefusedError, match=r"no server named s1 here \(known: known\)"):
        host.stop()


def test_old_starts_are_forgotten_by_their_number_not_by_the_clock(host: Any) -> None:
    """Folders from before a clock that jumped back sort behind all others by name."""
    for _ in range(3):
        host.ended(host.launch("true"))
    starts = host.state / "vigil/servers/s1/starts"
    for index, old in enumerate(sorted(starts.iterdir())):
        old.rename(starts / f"{index + 1:06d}-20991231T235959")
    (host.state / "vigil/servers/s1/current").unlink()
    (host.state / "vigil/servers/s1/current").symlink_to("starts/000003-20991231T235959")
    for _ in range(19):
        last = host.launch("true")
        host.ended(last)
    kept = sorted(int(path.name[:6]) for path in starts.iterdir())
    assert kept == list(range(3, 23))
    assert host.ask("show", name="s1")["folder"] == last["folder"]


def test_note_is_kept_beside_its_start_only(host: Any) -> None:
    started = host.launch("true")
    host.ended(started)
    host.ask("note", name="s1", folder=started["folder"], verdict={"verdict": "ready"})
    assert host.ask("show", name="s1")["verdict"] == {"verdict": "ready"}
    host.ask("note", name="s1", folder=str(host.folder), verdict={"verdict": "ready"})
    assert not (host.folder / "verdict.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " " * 4096,
        "{",
        "[]",
        "null",
        '"x"',
        "{}",
        '{"main": 1}',
        '{"main": {"pid": "x"}}',
        "[" * 100_000,
        "\0",
        '{"a": NaN}',
        b"\xff\xfe",
    ],
)
def test_broken_state_is_no_state_and_breaks_nothing(host: Any, text: Any) -> None:
    broken = host.launch("sleep", "60", name="broken")
    host.ended(host.launch("true", name="whole"))
    host.stop("broken")
    for file in ("life.json", "exit.json", "plan.json", "verdict.json", "stop"):
        (Path(broken["folder"]) / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    known = {one["name"]: one for one in host.ask("list")["servers"]}
    assert set(known) == {"broken", "whole"}
    assert not known["broken"]["alive"]
    assert (known["broken"]["life"], known["broken"]["rebooted"]) == ({}, False)
    assert host.stop("broken")["already"]
    with pytest.raises(RefusedError):
        host.ask("tail", name="broken", limit_bytes=100)
    again = host.launch("true", name="broken")
    assert host.ended(again)["code"] == 0


@pytest.mark.parametrize("pid", [-1, 0, 1, 1 << 40, True])
def test_pid_that_cannot_be_a_server_is_never_signalled(host: Any, pid: int) -> None:
    started = host.launch("sleep", "60")
    host.stop()
    path = Path(started["folder"]) / "life.json"
    life = json.loads(path.read_text())
    life["main"] = life["launcher"] = {"pid": pid, "start_ticks": 1}
    path.write_text(json.dumps(life))
    assert host.ask("show", name="s1")["life"] == {}
    assert host.stop()["already"]


def test_stop_works_where_its_file_cannot_be_read(host: Any) -> None:
    started = host.launch("sleep", "60")
    (Path(started["folder"]) / "stop").unlink()
    assert host.stop()["exit"]["asked_by"] == "a signal to the launcher"


def test_removed_state_folder_does_not_keep_a_server_from_ending(host: Any) -> None:
    started = host.launch("sleep", "60")
    subprocess.run(["rm", "-r", host.state], check=True)
    os.kill(started["life"]["launcher"]["pid"], signal.SIGTERM)
    host.nothing_left()


def test_state_folder_that_is_a_file_is_refused(host: Any) -> None:
    host.state.write_text("x")
    with pytest.raises(RefusedError, match=r"state folder .*; nothing was started") as refused:
        host.launch("sleep", "60")
    assert refused.value.kind == "state"
    assert host.ask("list") == {"servers": []}


@needs_root
def test_full_disk_before_the_start_starts_nothing_and_leaves_nothing(host: Any, small_disk: Path) -> None:
    fill(small_disk)
    with pytest.raises(RefusedError, match="No space left on device; nothing was started"):
        host.launch("sleep", "60")
    assert {path.name for path in small_disk.rglob("*")} <= {"ballast", "vigil", "servers", ".lock"}
    host.nothing_left()


@needs_root
@pytest.mark.parametrize("pages", [0, 2, 3, 4, 6])
def test_disk_that_fills_up_during_the_start_starts_all_or_nothing(host: Any, small_disk: Path, pages: int) -> None:
    fill(small_disk)
    os.truncate(small_disk / "ballast", (small_disk / "ballast").stat().st_size - pages * 4096)
    refusals: list[str] = []
    with noted(refusals):
        started = host.launch("sleep", "60")
    if refusals:
        assert refusals == ["state"]
        assert {path.name for path in small_disk.rglob("*")} <= {"ballast", "vigil", "servers", ".lock"}
        host.nothing_left()
    else:
        fill(small_disk)
        assert host.stop()["exit"]["asked_by"] == "the test"
        assert host.ended(started)["signal"] == 15


@needs_root
def test_full_disk_after_the_start_loses_no_exit_status(host: Any, small_disk: Path) -> None:
    started = host.launch(
        "sh", "-c", "trap 'exit 42' USR1; echo up; while :; do sleep 0.05; done", log=str(host.folder / "s.log")
    )
    host.wait_log(started, "up")
    fill(small_disk)
    os.kill(started["life"]["main"]["pid"], signal.SIGUSR1)
    assert host.ended(started)["code"] == 42
    with pytest.raises(RefusedError, match="No space left"):
        host.ask("note", name="s1", folder=started["folder"], verdict={"text": "x" * 8000})
    assert not list(Path(started["folder"]).glob("*.part"))


@needs_root
def test_read_only_disk_starts_nothing_and_can_still_be_stopped(host: Any, small_disk: Path) -> None:
    host.launch("sleep", "60", log=str(host.folder / "s.log"))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(RefusedError, match="Read-only file system; nothing was started"):
        host.launch("sleep", "60", name="other")
    answer = host.stop()
    assert (answer["alive"], answer["launcher_alive"]) == (False, False)
    wait_for(lambda: not host.processes())
    subprocess.run(["mount", "-o", "remount,rw", small_disk], check=True)
