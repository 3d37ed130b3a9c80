"""Deaths and stops: the exit status, and nothing of the tree left behind."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from desks import alive, wait_for

# A tree that hides as well as it can: its members change session and group, lose their parents, ignore or never see a signal.
FAMILY = """
import os, signal, sys, time
def child(*acts):
    if os.fork() == 0:
        for act in acts: act()
        print("up", flush=True)
        while True: time.sleep(60)
def orphan():
    os.setsid()
    if os.fork(): os._exit(0)
def deaf():
    for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
def frozen():
    print("up", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
def stranger(): os.setpgid(0, 0)
child(); child(orphan); child(deaf); child(orphan, deaf); child(stranger, deaf); child(orphan, orphan, deaf, frozen)
"""
MEMBERS = 7


def family(host: Any, rest: str) -> dict[str, Any]:
    started: dict[str, Any] = host.run(FAMILY + rest)
    wait_for(lambda: host.log(started).count("up") >= MEMBERS - 1, "the family")
    wait_for(lambda: len(host.processes()) == MEMBERS + 1, "the family without those who left")
    return started


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        ("exit 0", 0, None),
        ("exit 1", 1, None),
        ("exit 137", 137, None),
        ("kill -9 $$", None, 9),
        ("kill -11 $$", None, 11),
        ("kill -15 $$", None, 15),
    ],
)
def test_exit_status_is_written_down(host: Any, script: str, code: int | None, number: int | None) -> None:
    end = host.ended(host.launch("sh", "-c", script))
    assert {key: end[key] for key in ("code", "signal", "asked_by", "left", "oom_killed")} == {
        "code": code,
        "signal": number,
        "asked_by": None,
        "left": 0,
        "oom_killed": False,
    }


def test_kill_of_the_main_process_is_no_stop_and_no_want_of_memory(host: Any) -> None:
    started = host.launch("sleep", "60")
    os.kill(started["life"]["main"]["pid"], signal.SIGKILL)
    end = host.ended(started)
    assert (end["signal"], end["asked_by"], end["oom_killed"]) == (9, None, False)


def test_death_leaves_nothing_of_a_tree_that_hides(host: Any) -> None:
    started = family(host, "signal.pause()")
    os.kill(started["life"]["main"]["pid"], signal.SIGSEGV)
    exit_file = Path(started["folder"]) / "exit.json"
    wait_for(lambda: exit_file.read_text().strip(), "the exit status, before those who refuse to end")
    end = host.ended(started)
    assert (end["signal"], end["left"]) == (11, MEMBERS - 1)
    host.nothing_left()


def test_exit_status_does_not_wait_for_a_deaf_leftover_and_says_that_it_is_not_all(host: Any) -> None:
    started = family(host, "time.sleep(60)")
    os.kill(started["life"]["main"]["pid"], signal.SIGKILL)
    exit_file = Path(started["folder"]) / "exit.json"
    first = json.loads(wait_for(lambda: exit_file.read_text().strip(), "the exit status"))
    assert (first["signal"], first["over"]) == (9, False)
    end = host.ended(started)
    assert "over" not in end
    assert end["signal"] == 9


def test_stop_leaves_nothing_of_a_tree_that_hides(host: Any) -> None:
    family(host, "signal.pause()")
    answer = host.stop(grace_s=0.3)
    assert (answer["alive"], answer["launcher_alive"], answer["already"]) == (False, False, False)
    assert (answer["exit"]["signal"], answer["exit"]["asked_by"]) == (15, "the test")
    assert not host.processes()


def test_stop_without_grace_kills_at_once(host: Any) -> None:
    family(host, "deaf(); print('deaf', flush=True); signal.pause()")
    answer = host.stop(grace_s=0)
    assert not host.processes()
    assert answer["exit"]["signal"] == 9


def test_stop_kills_a_deaf_server_when_its_grace_is_over(host: Any) -> None:
    started = host.launch("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
    host.wait_log(started, "up")
    answer = host.stop(grace_s=0.2)
    assert (answer["exit"]["signal"], answer["exit"]["asked_by"], answer["exit"]["oom_killed"]) == (
        9,
        "the test",
        False,
    )
    assert not host.processes()


def test_stop_lets_a_server_end_in_its_own_way(host: Any) -> None:
    started = host.launch("sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    host.wait_log(started, "up")
    assert host.stop(grace_s=20)["exit"]["code"] == 5
    assert "bye" in host.log(started)


def test_stop_wakes_a_frozen_server_so_that_it_can_end(host: Any) -> None:
    started = host.launch("sh", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    host.wait_log(started, "up")
    os.kill(started["life"]["main"]["pid"], signal.SIGSTOP)
    assert host.stop(grace_s=20)["exit"]["code"] == 5


def test_stop_gives_a_server_behind_a_shell_the_same_grace(host: Any) -> None:
    inner = "trap 'sleep 4; echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    started = host.launch("sh", "-c", 'sh -c "$0"; true', inner)
    host.wait_log(started, "up")
    host.stop(grace_s=20)
    assert "bye" in host.log(started)


def test_two_stops_at_once_are_one(host: Any) -> None:
    started = host.launch("sh", "-c", "trap 'echo asked' TERM; echo up; while :; do sleep 0.05; done")
    host.wait_log(started, "up")
    patient = host.open("stop", name="s1", grace_s=300, by="one")
    host.wait_log(started, "asked")
    answers = [host.stop(grace_s=0.2, by="two"), host.read(patient)]
    assert [answer["launcher_alive"] for answer in answers] == [False, False]
    assert {answer["exit"]["asked_by"] for answer in answers} == {"one"}
    assert host.log(started).count("asked") == 1


def test_stop_of_what_has_ended_changes_nothing(host: Any) -> None:
    end = host.ended(host.launch("sh", "-c", "exit 3"))
    answer = host.stop()
    assert (answer["already"], answer["exit"]) == (True, end)


def test_death_before_a_stop_was_not_asked_for(host: Any) -> None:
    started = family(host, "signal.pause()")
    os.kill(started["life"]["main"]["pid"], signal.SIGABRT)
    answer = host.stop(grace_s=0)
    assert (answer["exit"]["signal"], answer["exit"]["asked_by"]) == (6, None)
    assert not host.processes()


def test_signal_to_the_launcher_is_a_stop(host: Any) -> None:
    started = host.launch("sleep", "60")
    os.kill(started["life"]["launcher"]["pid"], signal.SIGTERM)
    assert host.ended(started)["asked_by"] == "a signal to the launcher"


def test_end_of_a_login_session_that_asks_all_at_once_is_a_stop(host: Any) -> None:
    started = host.launch("sleep", "60")
    launcher, main = started["life"]["launcher"]["pid"], started["life"]["main"]["pid"]
    os.kill(launcher, signal.SIGSTOP)
    for pid in (main, launcher):
        os.kill(pid, signal.SIGTERM)
    os.kill(launcher, signal.SIGCONT)
    end = host.ended(started)
    assert (end["signal"], end["asked_by"]) == (15, "a signal to the launcher")


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGALRM, signal.SIGTSTP]
)
def test_other_signals_do_not_touch_the_launcher(host: Any, number: int) -> None:
    started = host.launch("sleep", "60")
    os.kill(started["life"]["launcher"]["pid"], number)
    assert host.ask("show", name="s1")["launcher_alive"]
    assert host.stop()["exit"]["asked_by"] == "the test"


def test_asker_may_have_any_name(host: Any) -> None:
    host.launch("sleep", "60")
    assert host.stop(by='é "x" \\ \n \x1b[31m')["exit"]["asked_by"].startswith('é "x" \\')


def test_hold_stops_the_server_when_its_input_ends(host: Any) -> None:
    started = host.launch("sleep", "60")
    holder = host.open("hold", name="s1", grace_s=2, by="the end")
    assert alive(started["life"]["main"]["pid"])
    assert host.read(holder)["exit"]["asked_by"] == "the end"


def test_hold_does_not_touch_a_later_start_of_the_name(host: Any) -> None:
    first = host.launch("sleep", "60")
    holder = host.open("hold", name="s1", grace_s=2, by="the end")
    wait_for(lambda: Path(f"/proc/{holder.pid}/wchan").exists() and len(host.processes()) == 3)
    wait_for(lambda: "pipe" in Path(f"/proc/{holder.pid}/wchan").read_text(), "the holder's wait")
    host.stop()
    host.ended(first)
    second = host.launch("sleep", "60")
    assert host.read(holder)["already"]
    assert alive(second["life"]["main"]["pid"])
    host.stop()


def test_leftovers_of_a_detached_start_within_the_tree_go_on(host: Any) -> None:
    """A script that starts a server with us, and ends, must not take it down."""
    inner = host.folder / "inner.py"
    inner.write_text(
        "import json, subprocess, sys\n"
        "from vigil.hosts.bundle import LOADER, program\n"
        "spec = {'name': 'inner', 'command': ['sleep', '60'], 'plan': {}}\n"
        "request = program('launcher', 'desk', json.dumps({'verb': 'launch', 'args': {'spec': spec}}))\n"
        "subprocess.run([sys.executable, '-I', '-S', '-c', LOADER], input=request, check=True)\n"
    )
    outer = host.launch(sys.executable, str(inner), name="outer", env={"PYTHONPATH": os.pathsep.join(sys.path)})
    end = host.ended(outer)
    assert (end["code"], end["left"]) == (0, 0), host.log(outer)
    assert host.ask("show", name="inner")["alive"]
    assert host.stop(name="outer")["already"]
    assert host.stop(name="inner")["exit"]["signal"] == 15
