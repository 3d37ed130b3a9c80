"""Whatever happens to us, the server lives; whatever happens to its launcher, the server can be stopped."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from desks import RefusedError, alive, wait_for
from test_launcher_end import MEMBERS, family

from vigil.hosts.bundle import LOADER

PYENV = Path("~/.pyenv/versions").expanduser()


def pids(started: dict[str, Any]) -> tuple[int, int]:
    life = started["life"]
    return life["launcher"]["pid"], life["main"]["pid"]


def test_server_outlives_a_closed_terminal(host: Any) -> None:
    parent, child = pty.openpty()
    host.before = [
        sys.executable,
        "-c",
        "import os, sys; os.setsid(); os.close(os.open(sys.argv[1], os.O_RDWR)); os.execvp(sys.argv[2], sys.argv[2:])",
    ]
    host.before.append(os.ttyname(child))
    started = host.launch("sleep", "60")
    host.before = []
    os.close(child)
    os.close(parent)
    for pid in pids(started):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        assert fields[4] == "0"  # no terminal
    assert host.ask("show", name="s1")["alive"]
    host.stop()


def test_launcher_is_nobodys_child_and_no_member_of_our_session(host: Any) -> None:
    started = host.launch("sleep", "60")
    launcher, main = pids(started)
    assert os.getsid(launcher) not in {os.getsid(0), os.getsid(main)}
    assert os.getsid(launcher) != launcher  # so that it cannot be given a terminal
    host.stop()


def test_tool_that_dies_in_the_middle_of_a_start_leaves_all_or_nothing(host: Any) -> None:
    for index in range(8):
        desk = host.open("launch", spec=host.spec("sleep", "60", name=f"n{index}"))
        wait_for(
            lambda index=index: list(host.state.glob(f"vigil/servers/n{index}/starts/*/stop")), "the start's folder"
        )
        desk.kill()
        desk.communicate()
        known = {one["name"]: one for one in host.ask("list")["servers"]}
        running = [pid for pid in host.processes() if Path(f"/proc/{pid}/comm").read_text() == "sleep\n"]
        assert set(running) <= {one["life"]["main"]["pid"] for one in known.values() if one["life"]}
        for name in known:
            host.stop(name)
        host.nothing_left()


def test_server_outlives_its_launcher_and_is_stopped_by_identity(host: Any) -> None:
    started = family(host, "signal.pause()")
    launcher, main = pids(started)
    os.kill(launcher, signal.SIGKILL)
    wait_for(lambda: not alive(launcher))
    known = host.ask("show", name="s1")
    assert (known["alive"], known["launcher_alive"], known["exit"]) == (True, False, {})
    with pytest.raises(RefusedError, match=f"in use by a running server .pid {main}."):
        host.launch("sleep", "60")
    answer = host.stop(grace_s=0.3)
    assert not host.processes()
    assert (answer["alive"], answer["already"]) == (False, False)
    assert answer["exit"] == {
        **answer["exit"],
        "code": None,
        "signal": None,
        "asked_by": "the test",
        "oom_killed": False,
    }


def test_rest_of_a_tree_whose_launcher_and_main_were_killed_is_found(host: Any) -> None:
    launcher, main = pids(family(host, "signal.pause()"))
    os.kill(launcher, signal.SIGKILL)
    os.kill(main, signal.SIGKILL)
    wait_for(lambda: len(host.processes()) == MEMBERS - 1)
    answer = host.stop(grace_s=0)
    assert not host.processes()
    assert not answer["already"]


def test_member_with_a_title_for_an_environment_is_found_by_its_session(host: Any) -> None:
    """What `setproctitle` leaves behind: no mark in /proc/PID/environ."""
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.execve('/bin/sh', ['sh', '-c', 'sleep 61 & wait'], {'PATH': '/usr/bin:/bin'})\n"
        "print('up', flush=True); time.sleep(60)"
    )
    started = host.run(code)
    host.wait_log(started, "up")
    launcher, main = pids(started)

    def members() -> list[int]:
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _session(path) == main]

    wait_for(lambda: len(members()) == 3)
    hidden = members()
    os.kill(launcher, signal.SIGKILL)
    host.stop(grace_s=0)
    assert not [pid for pid in hidden if alive(pid)]


def _session(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:
        return 0


def test_frozen_launcher_is_woken_to_stop(host: Any) -> None:
    started = host.launch("sleep", "60")
    os.kill(pids(started)[0], signal.SIGSTOP)
    assert host.stop()["exit"]["signal"] == 15


def test_pid_of_another_process_is_not_taken_for_ours(host: Any) -> None:
    started = host.launch("sleep", "60")
    stranger = subprocess.Popen(["sleep", "60"])
    host.stop()
    life = Path(started["folder"]) / "life.json"
    life.write_text(life.read_text().replace(f'"pid": {pids(started)[1]}', f'"pid": {stranger.pid}'))
    assert not host.ask("show", name="s1")["alive"]
    assert host.stop()["already"]
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def test_main_that_nobody_reaps_is_no_running_server(host: Any) -> None:
    """In a container whose first process reaps nothing, a dead server stays a zombie once its launcher is gone."""
    keeper = (
        "import ctypes, os, subprocess, sys, time\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "subprocess.run(sys.argv[1:]); time.sleep(60)\n"
    )
    host.before = [sys.executable, "-c", keeper]
    desk = host.open("launch", spec=host.spec("sleep", "60"))
    desk.stdin.close()
    reply = desk.stdout.readline() + desk.stdout.readline()
    assert b'"ok"' in reply
    host.before = []
    launcher, main = pids(host.ask("show", name="s1"))
    os.kill(launcher, signal.SIGKILL)
    os.kill(main, signal.SIGKILL)
    wait_for(lambda: not alive(main))
    assert Path(f"/proc/{main}").exists()
    known = host.ask("show", name="s1")
    assert (known["alive"], known["launcher_alive"]) == (False, False)
    desk.kill()
    desk.wait()
    desk.stdout.close()
    desk.stderr.close()


def test_another_boot_is_seen_as_such(host: Any) -> None:
    started = host.launch("sleep", "60")
    life = Path(started["folder"]) / "life.json"
    text = life.read_text()
    life.write_text(text.replace(started["life"]["boot_id"], "00000000-0000-0000-0000-000000000000"))
    known = host.ask("show", name="s1")
    assert (known["rebooted"], known["alive"], known["launcher_alive"], known["elsewhere"]) == (
        True,
        False,
        False,
        None,
    )
    assert host.stop()["already"]
    assert alive(pids(started)[1])
    life.write_text(text)
    host.stop()


def test_start_on_another_host_with_the_same_home_is_not_called_dead(host: Any) -> None:
    started = host.launch("sleep", "60")
    life = Path(started["folder"]) / "life.json"
    text = life.read_text()
    there = text.replace(started["life"]["boot_id"], "00000000-0000-0000-0000-000000000000")
    life.write_text(there.replace(f'"host": "{started["life"]["host"]}"', '"host": "gpu7"'))
    known = host.ask("show", name="s1")
    assert (known["rebooted"], known["elsewhere"]) == (False, "gpu7")
    with pytest.raises(RefusedError, match="the name s1 is in use on gpu7"):
        host.launch("sleep", "60")
    assert host.launch("sleep", "60", name=None, made_name="s1")["name"] == "s1-2"
    host.stop("s1-2")
    life.write_text(text)
    host.stop()


@pytest.mark.parametrize("version", ["3.9.18", "3.10.13", "3.12.1", "3.13.0"])
def test_launcher_runs_on_every_python_from_3_9(host: Any, version: str) -> None:
    python = PYENV / version / "bin" / "python3"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    host.python = [str(python)]
    started = host.launch("sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done")
    host.wait_log(started, "up")
    assert host.ask("list")["servers"][0]["alive"]
    assert host.stop()["exit"]["code"] == 5


@pytest.mark.parametrize("version", ["3.6.15", "3.8.18"])
def test_older_python_is_refused_with_its_version(host: Any, version: str) -> None:
    python = PYENV / version / "bin" / "python3"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    host.python = [str(python)]
    with pytest.raises(
        RefusedError, match=f"python3 there is {version.rpartition('.')[0]}; 3.9 or newer is needed"
    ) as refused:
        host.launch("sleep", "60")
    assert refused.value.kind == "python"


def test_loader_ends_where_its_text_never_comes() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADER], input=b"00000100\nab", capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, b"")
