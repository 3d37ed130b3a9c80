"""The attester in plain Python processes: what it says, and that nobody feels it."""

import ast
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from children import FILES, Nursery, until

from vigil.observer.attested import Order, look
from vigil.observer.redact import Redactor
from vigil.observer.stacks import find_tool

IMPORTED = "import engine\n"


def told_modules(nursery: Nursery, count: int = 1) -> list[list[list[object]]]:
    return [one.told["modules"] for one in nursery.answers(count, packages=["engine"])]


# --- what it says


def test_attester_tells_each_file_with_its_size_and_time_when_it_was_loaded(nursery: Nursery) -> None:
    path = nursery.module("engine/__init__.py", "value = 1\n")
    then = path.stat()
    nursery.start(IMPORTED, of="engine")
    path.write_text("value = 2 # edited since\n")

    assert told_modules(nursery) == [[["engine", str(path), then.st_mtime, then.st_size]]]


def test_attester_counts_instances_of_a_class_also_of_its_children_and_where_they_are_frozen(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py", "class Worker: pass\nclass Better(Worker): pass\nclass Idle: pass\n")
    code = "import engine, gc\ndef serve():\n    worker = [{'deep': engine.Better()}]\n    gc.freeze()\n    wait()\n"
    wait = "def wait():\n    print('ready', flush=True)\n    sys.stdin.read()\nimport sys\nserve()\n"
    nursery.start(code + wait, of="engine")
    (answer,) = nursery.answers(1, classes=["Worker", "engine.Better", "Idle", "Nowhere"])
    told = answer.told["classes"]

    assert {name: (one["defined"], one["alive"]) for name, one in told.items()} == {
        "Worker": (True, 1),
        "engine.Better": (True, 1),
        "Idle": (True, 0),
        "Nowhere": (False, 0),
    }
    assert told["Worker"]["frozen"]


def test_attester_finds_the_arguments_by_their_module_or_by_a_stack(nursery: Nursery) -> None:
    nursery.module(
        "engine/__init__.py",
        "import dataclasses\n"
        "@dataclasses.dataclass\nclass Cache:\n    size: float = 0.5\n"
        "@dataclasses.dataclass\nclass Args:\n    port: int = 1\n    cache: Cache = dataclasses.field(default_factory=Cache)\n",
    )
    nursery.start("import engine\nkept = engine.Args(port=7)\n", of="engine")
    (answer,) = nursery.answers(1, arguments=["Args"])
    (rooted,) = nursery.answers(1, arguments=["Args"], roots=["nowhere:x", "__main__:kept"])

    assert answer.told["arguments"] == {"class": "Args", "from": "a stack", "values": {"port": 7, "cache.size": 0.5}}
    assert rooted.told["arguments"]["from"] == "__main__:kept"


def test_attester_runs_no_code_of_a_value_that_it_tells(nursery: Nursery) -> None:
    nursery.module(
        "engine/__init__.py",
        "class Trap:\n    def __str__(self): open('sprung', 'w')\n    __repr__ = __str__\n"
        "    def __getattr__(self, name): open('sprung', 'w')\n"
        "class Args:\n    def __init__(self): self.trap = Trap(); self.list = [Trap()] * 3\n",
    )
    nursery.start("import engine\nkept = engine.Args()\n", of="engine")
    (answer,) = nursery.answers(1, arguments=["Args"], roots=["__main__:kept"])

    assert answer.told["arguments"]["values"] == {"trap": "<Trap>", "list": ["<Trap>"] * 3}
    assert not (nursery.folder / "sprung").exists()


# --- forks, spawns, executions


def test_forked_child_answers_for_itself(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    nursery.module("engine/late.py")
    code = "import engine, os, sys\npid = os.fork()\nif not pid:\n    import engine.late\n"
    nursery.start(code, of="engine")
    answers = nursery.answers(2, packages=["engine"])

    assert sorted(len(one.told["modules"]) for one in answers) == [1, 2]
    assert len({one.pid for one in answers}) == 2
    assert all(one.told["pid"] == one.pid for one in answers)


def test_forked_child_outlives_its_parent_and_the_parents_socket_goes_with_it(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    code = "import engine, os, sys, time\nif os.fork():\n    time.sleep(0.2)\n    print('ready', flush=True)\n    os._exit(0)\n"
    child = nursery.start(code, of="engine")
    child.wait(20)
    (answer,) = nursery.answers(1)

    assert answer.pid != child.pid
    os.kill(answer.pid, 9)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_process_of_multiprocessing_answers_for_itself(nursery: Nursery, method: str) -> None:
    nursery.module("engine/__init__.py", "import time\ndef work(pipe):\n    pipe.send(1)\n    time.sleep(60)\n")
    code = (
        "import multiprocessing, engine\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    here, there = context.Pipe()\n"
        "    one = context.Process(target=engine.work, args=(there,), daemon=True)\n"
        "    one.start()\n    here.recv()\n"
        "    print('ready', flush=True)\n    import sys\n    sys.stdin.read()\n"
    )
    nursery.start(code, of="engine")
    answers = nursery.answers(2, packages=["engine"])

    assert all([module[0] for module in one.told["modules"]] == ["engine"] for one in answers)


def test_program_that_executes_another_answers_anew_under_its_pid(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    second = nursery.module("second.py", "import engine, sys\nprint('ready', flush=True)\nsys.stdin.read()\n")
    child = nursery.start(
        f"import engine, os, sys\nos.execv(sys.executable, [sys.executable, {str(second)!r}])\n", of="engine"
    )
    (answer,) = nursery.answers(1)

    assert answer.pid == child.pid


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_interpreter_that_ignores_our_path_has_no_attester_and_runs_as_ever(nursery: Nursery, option: str) -> None:
    done = nursery.run("import json, sys; print('sitecustomize' in sys.modules)", option)

    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert list(nursery.sockets.iterdir()) == []


def test_interpreter_with_a_safe_path_has_it(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    nursery.start(IMPORTED, "-P", of="engine")

    assert len(nursery.answers(1)) == 1


def test_process_that_imports_nothing_of_the_engine_has_no_thread_and_no_socket(nursery: Nursery) -> None:
    done = nursery.run("import json, os; print(len(os.listdir('/proc/self/task')))", of="engine")

    assert (done.stdout, done.stderr) == ("1\n", "")
    assert list(nursery.sockets.iterdir()) == []


# --- what it hides


def test_hidden_sitecustomize_runs_and_is_the_one_that_is_seen(nursery: Nursery) -> None:
    hidden = nursery.module("hidden/sitecustomize.py", "print('hidden', __name__)\nmark = 1\n").parent
    code = "import sitecustomize, sys; print(sitecustomize.mark, sitecustomize.__file__, any('home' in p for p in sys.path))"
    done = nursery.run(code, behind=(hidden,))

    assert done.stdout == f"hidden sitecustomize\n1 {hidden}/sitecustomize.py False\n"


def test_without_a_hidden_one_there_is_none(nursery: Nursery) -> None:
    done = nursery.run("import sitecustomize")

    assert "ModuleNotFoundError" in done.stderr or "ImportError" in done.stderr


@pytest.mark.parametrize("text", ["1/0\n", "import nothing_of_that_name\n", "def (\n", "raise SystemExit(5)\n"])
def test_broken_hidden_sitecustomize_breaks_as_it_does_without_us(nursery: Nursery, text: str) -> None:
    hidden = nursery.module("hidden/sitecustomize.py", text).parent
    ours = nursery.run("print('on')", behind=(hidden,))
    env = {**nursery.env(), "PYTHONPATH": str(hidden)}
    theirs = subprocess.run(
        [sys.executable, "-c", "print('on')"], env=env, cwd=nursery.folder, capture_output=True, text=True, check=False
    )

    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert ours.stderr.splitlines()[-1:] == theirs.stderr.splitlines()[-1:]


def test_missing_folder_or_a_folder_that_is_a_file_is_silence(nursery: Nursery, tmp_path: Path) -> None:
    nursery.sockets.rmdir()
    nursery.module("engine/__init__.py")
    gone = nursery.run("import engine, time; time.sleep(0.1); print('on')", of="engine")
    nursery.sockets.write_text("")
    file = nursery.run("import engine, time; time.sleep(0.1); print('on')", of="engine")

    assert (gone.stdout, gone.stderr, file.stdout, file.stderr) == ("on\n", "", "on\n", "")


def test_long_state_folder_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    nursery = Nursery(deep)
    nursery.module("engine/__init__.py")
    nursery.start(IMPORTED, of="engine")
    try:
        assert len(nursery.answers(1)) == 1
    finally:
        nursery.close()


# --- hostile peers


def connect(nursery: Nursery) -> socket.socket:
    (path,) = until(lambda: list(nursery.sockets.iterdir()), "a socket")
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(20)
    until(lambda: line.connect_ex(str(path)) == 0, "a connection")
    return line


def test_socket_is_the_users_own(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    nursery.start(IMPORTED, of="engine")
    nursery.answers(1)
    (path,) = nursery.sockets.iterdir()

    assert path.stat().st_mode & 0o777 == 0o600


def as_nobody(path: Path) -> bytes:
    """Ask as another user; return "in " where the socket could be reached, and what it answered."""
    here, there = os.pipe()
    if os.fork() == 0:
        try:
            os.setuid(65534)
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(20)
            line.connect(str(path))
            os.write(there, b"in ")
            line.sendall(b"{}\n")
            os.write(there, line.recv(100))
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        return pipe.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_user_is_not_heard(nursery: Nursery) -> None:
    """The folder keeps others out; where somebody opened it, the kernel's word on who asks does."""
    nursery.module("engine/__init__.py")
    nursery.start(IMPORTED, of="engine")
    nursery.answers(1)
    (path,) = nursery.sockets.iterdir()
    path.chmod(0o777)
    opened = [one for one in path.parents if one.stat().st_mode & 0o007 == 0]
    for one in opened:
        one.chmod(0o755)
    heard = as_nobody(path)
    for one in opened:
        one.chmod(0o700)

    assert heard == b"in "
    assert len(nursery.answers(1)) == 1


@pytest.mark.parametrize(
    "data", [b"\n", b"no json\n", b"[" * 100000 + b"\n", b'"text"\n', b'{"packages": 7}\n', b"x" * (300 << 10)]
)
def test_nonsense_is_answered_by_silence_and_the_next_is_heard(nursery: Nursery, data: bytes) -> None:
    nursery.module("engine/__init__.py")
    child = nursery.start(IMPORTED, of="engine")
    with connect(nursery) as line:
        try:
            line.sendall(data)
            assert line.recv(100) == b""
        except (BrokenPipeError, ConnectionResetError):  # it had heard enough
            pass

    assert [one.error for one in nursery.answers(1)] == [""]
    assert child.poll() is None


def test_peer_that_says_nothing_holds_up_nobody_for_long(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    nursery.start(IMPORTED, of="engine")
    with connect(nursery):
        (answer,) = nursery.ask(8.0)

    assert answer.error == ""


def test_peer_that_hangs_up_before_the_answer_breaks_nothing(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    child = nursery.start(IMPORTED, of="engine")
    for _ in range(20):
        with connect(nursery) as line:
            line.sendall(b"{}\n")
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    assert [one.error for one in nursery.answers(1)] == [""]
    assert child.poll() is None


# --- processes that cannot answer


def test_process_that_never_gives_the_interpreter_away_is_told_to_be_silent(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    # A pattern that runs for ever in C, with the interpreter's lock held.
    code = "import engine, re, time\nprint('ready', flush=True)\ntime.sleep(0.5)\nre.match(r'(a+)+$', 'a' * 40 + 'b')\n"
    child = nursery.start(code, of="engine")
    nursery.answers(1)
    until(lambda: nursery.ask(0.5)[0].error == "silent", "silence")
    (answer,) = nursery.ask(1.0)

    assert (answer.pid, answer.error) == (child.pid, "silent")


def test_program_that_closes_all_its_files_loses_no_connection_to_us(nursery: Nursery) -> None:
    """Our thread wakes once more with a descriptor that may be somebody else's by then: it lets go of it."""
    nursery.module("engine/__init__.py")
    code = (
        "import engine, os, socket, threading, time\n"
        "time.sleep(0.3)\n"
        "os.closerange(3, 100)\n"
        "doors = [socket.create_server(('127.0.0.1', 0)) for _ in range(20)]\n"
        "print('ready', flush=True)\n"
        "import sys\nsys.stdin.readline()\n"
        "for door in doors:\n"
        "    line = socket.create_connection(door.getsockname())\n"
        "    door.settimeout(5)\n    door.accept()[0].sendall(b'mine')\n    assert line.recv(4) == b'mine'\n"
        "print('served', flush=True)\n"
    )
    child = nursery.start(code, of="engine")
    nursery.ask(0.5)
    assert child.stdin
    assert child.stdout
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline().strip() == "served"


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_stopped_process_is_silent_and_the_others_are_heard(nursery: Nursery) -> None:
    nursery.module("engine/__init__.py")
    first, second = (nursery.start(IMPORTED, of="engine") for _ in range(2))
    nursery.answers(2)
    os.kill(first.pid, signal.SIGSTOP)
    until(lambda: stopped(first.pid), "its standing still")
    answers = {one.pid: one.error for one in nursery.ask(1.0)}

    assert answers == {first.pid: "silent", second.pid: ""}


# --- its own text


def test_attester_imports_nothing_at_its_start_that_is_not_there_already() -> None:
    tree = ast.parse(FILES["sitecustomize.py"])
    first = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}

    assert first == {"_thread", "os", "sys"}


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13", "3.14"])
def test_attester_answers_in_other_pythons_with_a_fork_and_frozen_objects(nursery: Nursery, version: str) -> None:
    found = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    python = str(found[-1]) if found else shutil.which(f"python{version}")
    if python is None:
        pytest.skip(f"no Python {version} here")
    nursery.module("engine/__init__.py", "class Foo: pass\n")
    code = (
        "import engine, gc, os, sys\n"
        "def serve():\n    foo = [engine.Foo()]\n    gc.freeze()\n    os.fork()\n"
        "    print('ready', flush=True)\n    sys.stdin.read()\nserve()\n"
    )
    nursery.start(code, "-W", "ignore", python=python, of="engine")
    answers = nursery.answers(2, packages=["engine"], classes=["Foo"], arguments=["Foo"])

    assert all(one.told["python"].startswith(f"{version}.") for one in answers)
    assert all(one.told["classes"]["Foo"]["alive"] == 1 for one in answers)
    assert all(one.told["arguments"]["from"] == "a stack" for one in answers)


def test_attester_is_read_by_python_3_9() -> None:
    for text in FILES.values():
        ast.parse(text, feature_version=(3, 9))


def test_silent_process_is_told_with_where_it_stands(nursery: Nursery, tmp_path: Path) -> None:
    nursery.module("engine/__init__.py")
    code = "import engine, re, time\nprint('ready', flush=True)\ntime.sleep(0.5)\nre.match(r'(a+)+$', 'a' * 40 + 'b')\n"
    child = nursery.start(code, of="engine")
    nursery.answers(1)
    (tmp_path / "attest").symlink_to(nursery.sockets)
    until(lambda: nursery.ask(0.5)[0].error == "silent", "silence")
    (told,) = look(str(tmp_path), [(child.pid, "engine")], Order(), Redactor())["processes"]

    assert told["error"].startswith("it did not answer in time")
    if find_tool(child.pid) and os.geteuid() == 0:  # the kernel may forbid it to others
        assert "py-spy sees it in " in told["error"]
