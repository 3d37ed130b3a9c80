"""Real processes: roots of every kind, short lives, workers, ends."""

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vigil import facts
from vigil.observer.core import Observer
from vigil.observer.life import read_boot_id
from vigil.observer.process import age_s as process_age_s
from vigil.observer.process import read_stat

WORKER = (
    "import ctypes, time; ctypes.CDLL(None).prctl(15, b'engine::worker_0', 0, 0, 0); "
    "print('titled', flush=True); time.sleep(60)"
)


def write_life(folder: Path, pid: int, log: Path, launcher: int, offset: int = 0) -> str:
    def identity(number: int) -> dict[str, int]:
        stat = read_stat(number)
        return {"pid": number, "start_ticks": stat.start_ticks if stat else 1}

    folder.mkdir(exist_ok=True)
    life = {
        "launcher": identity(launcher),
        "main": identity(pid),
        "boot_id": read_boot_id(),
        "log": str(log),
        "log_offset": offset,
    }
    (folder / "life.json").write_text(json.dumps(life))
    (folder / "exit.json").write_text(" " * 4096)  # reserved by the launcher: not ended yet
    return str(folder)


def write_exit(folder: Path, **fields: Any) -> None:
    (folder / "exit.json").write_text(
        json.dumps({"code": None, "signal": None, "asked_by": None, "left": 0, "oom_killed": False, **fields})
    )


def age_s(pid: int) -> float:
    stat = read_stat(pid)
    return process_age_s(stat.start_ticks) if stat else 0.0


def test_pid_is_followed_to_its_end(watching: Any, start: Any, python: str) -> None:
    server = start(python, "-c", "import time; time.sleep(60)", "--api-key", "secret-1")
    watching.watch(pid=server.pid, key_flags=["--api-key"])
    main = watching.wait(facts.MainStarted)
    assert (main.pid, main.wrapped, main.sure, main.argv[-1]) == (server.pid, False, False, "***")
    server.kill()
    assert watching.wait(facts.MainExited).pid == server.pid
    assert watching.wait(facts.RootExited).code is None


def test_pid_that_is_gone_is_an_end(watching: Any, start: Any) -> None:
    server = start("true")
    server.wait()
    watching.watch(pid=server.pid)
    watching.wait(facts.RootExited)


def test_loop_of_short_lives_is_seen_as_attempts(watching: Any, start: Any, tmp_path: Path) -> None:
    server = tmp_path / "short-server"
    server.write_text(f"#!{sys.executable} -IS\nimport time\ntime.sleep(0.15)\n")
    server.chmod(0o755)
    root = start("sh", "-c", f"for i in 1 2 3 4; do {server}; sleep 0.05; done; exit 7")
    watching.watch(pid=root.pid)
    root.wait()
    watching.wait(facts.RootExited)
    begun = [fact for fact in watching.all(facts.MainStarted) if fact.pid != root.pid]
    assert len(begun) == len({fact.pid for fact in begun}) >= 3
    assert all(fact.wrapped for fact in begun)
    assert {fact.pid for fact in begun} <= {fact.pid for fact in watching.all(facts.MainExited)}


def test_shell_that_does_the_work_itself_is_the_main_process(watching: Any, start: Any) -> None:
    root = start("sh", "-c", "sleep 60; true")
    watching.watch(pid=root.pid)
    main = watching.wait(facts.MainStarted)
    assert (main.pid, main.wrapped) == (root.pid, False)


def test_engine_below_a_supervisor_is_sure(watching: Any, start: Any, python: str) -> None:
    code = f"import subprocess; subprocess.run([{python!r}, '-c', 'import time; time.sleep(60)', 'my.engine', '--x'])"
    root = start(python, "-c", code)
    watching.watch(pid=root.pid, main_signs=["my.engine"])
    main = watching.wait(facts.MainStarted, lambda fact: fact.sure)
    assert (main.wrapped, main.pid != root.pid) == (True, True)
    os.kill(main.pid, signal.SIGKILL)
    assert watching.wait(facts.MainExited).pid == main.pid


def test_engine_that_executes_late_below_a_supervisor_is_found_and_so_is_the_next(
    watching: Any, start: Any, python: str
) -> None:
    engine = f"import os; input(); os.execv({python!r}, ['x', '-c', 'import time; time.sleep(60)', 'my.engine'])"
    code = f"import subprocess\nwhile True: subprocess.run([{python!r}, '-c', {engine!r}])"
    root = start(python, "-c", code, stdin=-1)
    watching.watch(pid=root.pid, main_signs=["my.engine"])
    seen = watching.wait(facts.ChildStarted)  # it counts as a child of the supervisor by then
    for _ in range(2):
        root.stdin.write(b"go\n")
        root.stdin.flush()
        main = watching.wait(facts.MainStarted, lambda fact: fact.sure, after=seen)
        os.kill(main.pid, signal.SIGKILL)
        seen = watching.wait(facts.MainExited, after=main)
        assert seen.pid == main.pid


def test_shell_that_executes_the_server_begins_one_attempt(watching: Any, start: Any, python: str) -> None:
    root = start("sh", "-c", f"read go; exec {python} -c 'import time; time.sleep(60)' my.engine", stdin=-1)
    watching.watch(pid=root.pid, main_signs=["my.engine"])
    watching.wait(facts.Sampled)
    root.stdin.write(b"go\n")
    root.stdin.flush()
    main = watching.wait(facts.MainStarted, lambda fact: fact.sure)
    assert (main.pid, main.wrapped) == (root.pid, False)


def test_killed_worker_is_told(watching: Any, start: Any, python: str) -> None:
    code = f"import subprocess, time; p = subprocess.Popen([{python!r}, '-c', {WORKER!r}]); p.wait(); time.sleep(60)"
    root = start(python, "-c", code, stdout=-1)
    watching.watch(pid=root.pid, workers=["engine::worker"])
    assert root.stdout.readline() == b"titled\n"
    worker = watching.wait(facts.ChildStarted, lambda fact: fact.worker)
    os.kill(worker.pid, signal.SIGKILL)
    gone = watching.wait(facts.ChildExited)
    assert (gone.pid, gone.worker, gone.oom_killed) == (worker.pid, True, False)
    assert not watching.all(facts.MainExited)


def test_title_is_shown_safely(watching: Any, start: Any, python: str) -> None:
    title = "import time; time.sleep(60) # \x1b[31m api_key='hunter2' " + "x" * 500
    code = f"import subprocess; subprocess.run([{python!r}, '-c', {title!r}])"
    watching.watch(pid=start(python, "-c", code).pid)
    child = watching.wait(facts.ChildStarted)
    assert len(child.name) <= 120
    assert "hunter2" not in child.name
    assert "\x1b" not in child.name


def test_life_ends_with_its_exit_code_after_the_logs_last_line(
    watching: Any, start: Any, log: Path, tmp_path: Path
) -> None:
    server = start("sh", "-c", "exec sleep 60")
    launcher = start("sleep", "60")
    log.write_bytes(b"yesterday\n")
    watching.watch(life=write_life(tmp_path / "life", server.pid, log, launcher.pid, offset=10))
    assert watching.wait(facts.Launched).log_offset == 10
    watching.wait(facts.MainStarted)
    with log.open("ab") as file:
        file.write(b"Traceback\nValueError: no newline")
    server.kill()
    server.wait()
    write_exit(tmp_path / "life", code=2, left=1)
    ended = watching.wait(facts.MainExited)
    root = watching.wait(facts.RootExited)
    assert (ended.code, root.code, root.left) == (2, 2, 1)
    last = watching.wait(facts.LogGrew, lambda fact: fact.lines and "no newline" in fact.lines[-1].text)
    assert watching.order(last, ended, root) == sorted(watching.order(last, ended, root))
    assert watching.lines() == [(2, "Traceback"), (3, "ValueError: no newline")]


def test_life_that_was_over_before_we_came_is_one_attempt(watching: Any, start: Any, log: Path, tmp_path: Path) -> None:
    server = start("true")
    folder = write_life(tmp_path / "life", server.pid, log, os.getpid())
    server.wait()
    log.write_bytes(b"usage: launch_server.py\n")
    write_exit(tmp_path / "life", code=2, signal=None)
    watching.watch(life=folder)
    root = watching.wait(facts.RootExited)
    (begun,) = watching.all(facts.MainStarted)
    (ended,) = watching.all(facts.MainExited)
    assert (begun.pid, ended.code, root.code) == (server.pid, 2, 2)
    assert watching.lines() == [(1, "usage: launch_server.py")]


def test_life_of_another_boot_is_over(watching: Any, start: Any, log: Path, tmp_path: Path) -> None:
    server = start("sleep", "60")
    folder = Path(write_life(tmp_path / "life", server.pid, log, 1))
    life = json.loads((folder / "life.json").read_text())
    (folder / "life.json").write_text(
        json.dumps({**life, "boot_id": "another", "launcher": {"pid": 0, "start_ticks": 0}})
    )
    log.write_bytes(b"its last line\n")
    watching.watch(life=str(folder))
    root = watching.wait(facts.RootExited)
    assert (root.code, root.rebooted) == (None, True)
    assert watching.lines() == [(1, "its last line")]
    assert not watching.all(facts.MainStarted)


def test_life_that_ended_before_the_reboot_ended_by_itself(
    watching: Any, start: Any, log: Path, tmp_path: Path
) -> None:
    server = start("sleep", "60")
    folder = Path(write_life(tmp_path / "life", server.pid, log, 1))
    life = json.loads((folder / "life.json").read_text())
    (folder / "life.json").write_text(json.dumps({**life, "boot_id": "another"}))
    write_exit(folder, code=3)
    watching.watch(life=str(folder))
    root = watching.wait(facts.RootExited)
    assert (root.code, root.rebooted) == (3, False)


def test_main_process_is_told_dead_while_its_leftovers_refuse_to_end(
    watching: Any, start: Any, log: Path, tmp_path: Path
) -> None:
    server = start("sleep", "60")
    launcher = start("sleep", "60")
    watching.watch(life=write_life(tmp_path / "life", server.pid, log, launcher.pid))
    watching.wait(facts.MainStarted)
    server.kill()
    server.wait()
    write_exit(tmp_path / "life", signal=9, over=False)
    assert watching.wait(facts.MainExited).signal == 9
    root = watching.wait(facts.RootExited)  # without the launcher's last word
    assert (root.signal, root.left) == (9, 0)


def test_last_word_of_the_launcher_counts_its_leftovers(watching: Any, start: Any, log: Path, tmp_path: Path) -> None:
    server = start("sleep", "60")
    launcher = start("sleep", "60")
    watching.watch(life=write_life(tmp_path / "life", server.pid, log, launcher.pid))
    watching.wait(facts.MainStarted)
    write_exit(tmp_path / "life", signal=9, over=False)
    server.kill()
    server.wait()
    ended = watching.wait(facts.MainExited)
    write_exit(tmp_path / "life", signal=9, left=2)
    assert watching.wait(facts.RootExited, after=ended).left == 2


def test_life_killed_for_memory_is_told_so(watching: Any, start: Any, log: Path, tmp_path: Path) -> None:
    server = start("sleep", "60")
    watching.watch(life=write_life(tmp_path / "life", server.pid, log, os.getpid()))
    watching.wait(facts.MainStarted)
    server.kill()
    server.wait()
    write_exit(tmp_path / "life", signal=9, oom_killed=True)
    ended = watching.wait(facts.MainExited)
    assert (ended.code, ended.signal, ended.oom_killed) == (None, 9, True)


def test_life_that_is_written_late_is_waited_for(watching: Any, start: Any, log: Path, tmp_path: Path) -> None:
    watching.watch(life=str(tmp_path / "life"))
    watching.wait(facts.Ticked)
    server = start("sleep", "60")
    write_life(tmp_path / "life", server.pid, log, os.getpid())
    assert watching.wait(facts.MainStarted).pid == server.pid


def test_match_finds_the_next_life_too(watching: Any, start: Any, python: str) -> None:
    words = (python, "-c", "import time; time.sleep(60)", "--match-me-7731")
    first = start(*words)
    watching.watch(match="--match-me-7731")
    main = watching.wait(facts.MainStarted)
    assert main.pid == first.pid
    first.kill()
    first.wait()
    ended = watching.wait(facts.MainExited)
    second = start(*words)
    assert watching.wait(facts.MainStarted, after=ended).pid == second.pid
    assert not watching.all(facts.RootExited)


def test_writer_of_the_log_is_the_root(watching: Any, start: Any, log: Path, python: str) -> None:
    with log.open("ab") as out:
        server = start(python, "-c", "import time; print('up', flush=True); time.sleep(60)", stdout=out)
    watching.watch(log=str(log))
    assert watching.wait(facts.MainStarted).pid == server.pid
    watching.wait_line("up")


def test_writer_behind_tee_is_found(watching: Any, start: Any, log: Path, python: str) -> None:
    start(
        "sh", "-c", f"{python} -c 'import time; print(1, flush=True); time.sleep(60)' server-9 | tee {log} >/dev/null"
    )
    watching.wait(facts.Reached)
    watching.watch(log=str(log))
    assert watching.wait(facts.MainStarted).argv[-1] == "server-9"


def test_port_alone_finds_its_owner(watching: Any, start: Any, python: str) -> None:
    code = "import socket,time; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1], flush=True); time.sleep(60)"
    server = start(python, "-c", code, stdout=-1)
    port = int(server.stdout.readline())
    watching.watch(port=port, host="127.0.0.1")
    opened = watching.wait(facts.PortOpened)
    assert (opened.owner, opened.pid, opened.port) == ("adopted", server.pid, port)
    assert watching.wait(facts.MainStarted).pid == server.pid
    server.kill()
    server.wait()
    watching.wait(facts.PortClosed)
    watching.wait(facts.MainExited)


def test_samples_never_fall_when_processes_end(
    watching: Any, start: Any, python: str, poll: Callable[..., Any]
) -> None:
    burn = "sum(range(3000000))"
    code = f"import subprocess, time; [subprocess.run([{python!r}, '-c', {burn!r}]) for _ in range(3)]; time.sleep(60)"
    watching.watch(pid=start(python, "-c", code).pid)
    poll(lambda: len(watching.all(facts.Sampled)) >= 8)
    samples = watching.all(facts.Sampled)
    assert all(sample.processes >= 1 for sample in samples)
    assert samples[-1].rss_bytes > 0
    cpu = [sample.cpu_s for sample in samples]
    assert cpu == sorted(cpu)
    moved = [sample.io_bytes for sample in samples]
    assert moved == sorted(moved)


def test_commands_out_of_place_are_troubles_and_no_end(watching: Any) -> None:
    watching.do("pace", log_s=1)
    watching.do("dance")
    watching.watch()
    watching.do("watch")
    watching.do("token", paths="x")
    watching.do("probe", probe="p", every_s="soon")
    watching.wait(facts.Troubled, lambda fact: "second" in fact.what)
    watching.wait(facts.Troubled, lambda fact: "token" in fact.what)
    after = watching.wait(facts.Troubled, lambda fact: "probe" in fact.what)
    watching.wait(facts.Ticked, after=after)


def test_same_trouble_is_told_once_a_minute(watching: Any) -> None:
    for _ in range(5):
        watching.do("dance")
    watching.do("sing")
    watching.wait(facts.Troubled, lambda fact: "sing" in fact.what)
    assert len(watching.all(facts.Troubled)) == 2


def test_observer_that_quits_leaves_no_thread_and_no_descriptor(
    start: Any, log: Path, poll: Callable[..., Any]
) -> None:
    log.write_bytes(b"x\n")
    server = start("sleep", "60")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = len(list(Path("/proc/self/fd").iterdir()))
        observer = Observer(lambda _: None)
        port = listener.getsockname()[1]
        watch = {"do": "watch", "pid": server.pid, "log": str(log), "port": port, "host": "127.0.0.1"}
        observer.run([watch, {"do": "pace", "log_s": 0.01}, {"do": "quit"}])
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("use_pidfd", [True, False])
def test_death_is_seen_with_and_without_pidfd(start: Any, poll: Callable[..., Any], use_pidfd: bool) -> None:  # noqa: FBT001
    from vigil.observer.deaths import Deaths  # noqa: PLC0415

    deaths = Deaths(use_pidfd)
    server = start("sleep", "60")
    stat = read_stat(server.pid)
    assert stat
    deaths.add(server.pid, stat.start_ticks)
    assert deaths.ended() == []
    server.kill()
    assert poll(deaths.ended) == [server.pid]
    deaths.add(server.pid, stat.start_ticks)  # dead already
    assert deaths.ended() == [server.pid]
    deaths.close()


def test_life_that_is_asked_to_end_says_so_before_its_children_end(
    watching: Any, start: Any, log: Path, tmp_path: Path, python: str
) -> None:
    server = start(python, "-c", "import subprocess, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)")
    folder = write_life(tmp_path / "life", server.pid, log, os.getpid())
    (Path(folder) / "stop").write_text(" " * 4096)  # reserved, as the launcher does
    watching.watch(life=folder)
    child = watching.wait(facts.ChildStarted)

    (Path(folder) / "stop").write_text("30.000\neve@laptop\n".ljust(4096))
    os.kill(child.pid, signal.SIGKILL)

    asked = watching.wait(facts.StopAsked)
    assert asked.by == "eve@laptop"
    watching.wait(facts.ChildExited, after=asked)


def test_children_that_follow_the_main_process_are_no_news(
    watching: Any, start: Any, log: Path, tmp_path: Path, python: str
) -> None:
    server = start(python, "-c", "import subprocess, time; subprocess.Popen(['sleep', '1000']); time.sleep(1000)")
    watching.watch(
        life=write_life(tmp_path / "life", server.pid, log, os.getpid())
    )  # we live: the exit code is waited for
    child = watching.wait(facts.ChildStarted)

    server.kill()
    server.wait()
    died_s = time.monotonic()
    watching.wait(facts.Ticked, lambda tick: tick.at_s > died_s + 0.2)  # a turn has come between the two deaths
    os.kill(child.pid, signal.SIGKILL)
    write_exit(tmp_path / "life", signal=9)

    watching.wait(facts.RootExited)
    assert not [fact for fact in watching.facts if isinstance(fact, facts.ChildExited)]


def test_shell_that_runs_one_short_script_after_another_is_not_the_server(
    watching: Any, start: Any, tmp_path: Path
) -> None:
    script = tmp_path / "dies.sh"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    loop = start("sh", "-c", f"while :; do {script}; sleep 0.03; done")
    while age_s(loop.pid) < 1.5:  # as old as a loop is when we come to it over a slow line
        select.select([], [], [], 0.05)

    watching.watch(pid=loop.pid)

    first = watching.wait(facts.Ticked)
    second = watching.wait(facts.Ticked, after=first)
    watching.wait(facts.Ticked, after=second)
    started = [fact.pid for fact in watching.facts if isinstance(fact, facts.MainStarted)]
    assert loop.pid not in started
