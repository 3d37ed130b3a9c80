"""What a started command gets from us, and what it must not get."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from desks import RefusedError, wait_for

SHOW = """
import json, os, signal
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
        "ignored": int(status["SigIgn"], 16), "blocked": int(status["SigBlk"], 16),
    "umask": int(status["Umask"], 8), "nice": os.nice(0), "sid": os.getsid(0), "pid": os.getpid(), "pgid": os.getpgid(0),
    "cwd": os.getcwd(), "tty": open("/proc/self/stat").read().rpartition(")")[2].split()[4],
    "env": {os.fsencode(k).hex(): os.fsencode(v).hex() for k, v in os.environ.items()},
}), flush=True)
"""

LIBC_OWN = (
    1 << 31 | 1 << 32
)  # glibc keeps signals 32 and 33 to itself: no program can set them, so what it inherits stays


def shown(host: Any, **fields: Any) -> dict[str, Any]:
    started = host.run(SHOW, **fields)
    host.ended(started)
    value = json.loads(host.log(started))
    assert isinstance(value, dict)
    return value


def test_command_holds_three_descriptors_and_none_of_ours(host: Any) -> None:
    leak = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(leak, True)  # noqa: FBT003
    host.before = ["sh", "-c", 'exec 7</etc/passwd 8>/dev/null; exec "$@"', "sh"]
    started = host.launch("sh", "-c", "sleep 60 & wait")
    os.close(leak)
    wait_for(lambda: "sleep" in {Path(f"/proc/{pid}/comm").read_text().strip() for pid in host.processes()})
    for pid in host.processes():
        held = {int(path.name): str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
        kmsg = {fd for fd, target in held.items() if target == "/dev/kmsg"}
        assert set(held) - kmsg == {0, 1, 2}
        assert held[0] == "/dev/null"
        if pid == started["life"]["launcher"]["pid"]:
            assert held[1] == held[2] == "/dev/null"
            assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        else:
            assert held[1] == held[2] == started["life"]["log"]
            assert not kmsg
    host.stop()


def test_command_has_default_signals_even_where_ours_are_ignored(host: Any) -> None:
    host.before = ["sh", "-c", 'trap "" HUP INT QUIT PIPE CHLD USR1; exec "$@"', "sh"]
    seen = shown(host)
    # Python itself ignores SIGPIPE and SIGXFSZ once it runs; nothing else may be ignored
    assert seen["ignored"] & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1 | LIBC_OWN) == 0
    assert seen["blocked"] == 0


def test_exit_status_is_kept_where_our_parent_ignores_sigchld(host: Any) -> None:
    host.python = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        "import signal, os, sys; signal.signal(17, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    host.python.append(sys.executable)
    assert host.ended(host.launch("sh", "-c", "exit 7"))["code"] == 7


def test_command_has_no_ignored_signal_at_all(host: Any) -> None:
    started = host.launch("sleep", "60")
    status = Path(f"/proc/{started['life']['main']['pid']}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    assert [int(fields[name], 16) & ~LIBC_OWN for name in ("SigIgn", "SigBlk", "SigCgt")] == [0, 0, 0]
    host.stop()


def test_command_has_a_session_of_its_own_and_our_umask_and_nice(host: Any) -> None:
    host.before = ["sh", "-c", 'umask 0027; exec nice -n 3 "$@"', "sh"]
    seen = shown(host)
    assert seen["sid"] == seen["pid"] == seen["pgid"]
    assert (seen["umask"], seen["nice"], seen["tty"]) == (0o027, min(os.nice(0) + 3, 19), "0")
    assert seen["cwd"] == str(host.folder)


def test_environment_comes_through_byte_by_byte(host: Any) -> None:
    odd = {
        "NEWLINE": "a\nb",
        "BYTES": b"\xff\xfe\x80".decode("utf-8", "surrogateescape"),
        "UNI": "é漢",
        "EMPTY": "",
        "EQ": "a=b",
    }
    host.env["LC_ALL"] = "C"
    seen = {bytes.fromhex(key): bytes.fromhex(value) for key, value in shown(host, env=odd)["env"].items()}
    for name, value in odd.items():
        assert seen[name.encode()] == value.encode("utf-8", "surrogateescape")
    assert seen[b"PYTHONUNBUFFERED"] == b"1"


def test_command_words_come_through_byte_by_byte(host: Any) -> None:
    words = ["a b", "", "'", '"', "$HOME", "\n", "é", b"\xff".decode("utf-8", "surrogateescape"), "-x", "\\"]
    started = host.launch(
        "python3", "-I", "-S", "-c", "import sys, os; print([os.fsencode(w) for w in sys.argv[1:]])", *words
    )
    host.ended(started)
    assert host.log(started).strip() == str([word.encode("utf-8", "surrogateescape") for word in words])


def test_variable_of_the_user_may_unset_our_default(host: Any) -> None:
    assert bytes.fromhex(shown(host, env={"PYTHONUNBUFFERED": ""})["env"][b"PYTHONUNBUFFERED".hex()]) == b""


def test_path_is_searched_in_the_environment_that_was_asked_for(host: Any) -> None:
    folder = host.folder / "bin"
    folder.mkdir()
    (folder / "my-server").write_text("#!/bin/sh\necho here\n")
    (folder / "my-server").chmod(0o755)
    with pytest.raises(RefusedError, match="cannot run my-server: not found on the PATH"):
        host.launch("my-server")
    started = host.launch("my-server", env={"PATH": f"/nowhere:{folder}:/usr/bin:/bin"})
    assert host.ended(started)["code"] == 0


def test_relative_command_is_found_in_its_folder(host: Any) -> None:
    (host.folder / "deep").mkdir()
    (host.folder / "deep" / "go").write_text("#!/bin/sh\npwd\n")
    (host.folder / "deep" / "go").chmod(0o755)
    started = host.launch("./go", cwd="deep")
    host.ended(started)
    assert host.log(started).strip() == str(host.folder / "deep")


def unusable(folder: Path) -> dict[str, str]:
    (folder / "plain").write_text("echo hello\n")
    (folder / "bare").write_text("echo hello\n")
    (folder / "bare").chmod(0o755)
    (folder / "lost").write_text("#!/no/such/python\n")
    (folder / "lost").chmod(0o755)
    (folder / "folder").mkdir()
    return {
        "./plain": "it is not executable (chmod +x)",
        "./bare": "it has no '#!' line and is no program for this machine (a shell script without one: sh ./bare)",
        "./lost": "the interpreter that its first line names does not exist",
        "./folder": "it is a folder",
        "./missing": "No such file or directory",
        "no-such-command": "not found on the PATH",
        "/etc/hostname/x": "No such file or directory",
    }


def test_command_that_cannot_run_is_refused_in_one_line_and_nothing_is_left(host: Any) -> None:
    for command, why in unusable(host.folder).items():
        with pytest.raises(RefusedError) as refused:
            host.launch(command, log="server.log")
        assert (refused.value.kind, str(refused.value)) == ("command", f"cannot run {command}: {why}")
    assert not (host.folder / "server.log").exists()
    assert [path.name for path in (host.state / "vigil" / "servers").iterdir()] == [".lock"]
    host.nothing_left()


def test_failed_start_keeps_the_one_before(host: Any) -> None:
    first = host.launch("true")
    host.ended(first)
    with pytest.raises(RefusedError):
        host.launch("no-such-command")
    assert host.ask("show", name="s1")["folder"] == first["folder"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"command": []}, "the command is empty"),
        ({"command": [""]}, "the command is empty"),
        ({"command": ["a\0b"]}, "NUL byte"),
        ({"env": {"A=B": "x"}}, "is no name of an environment variable"),
        ({"env": {"A": "x\0"}}, "NUL byte"),
        ({"cwd": "no/such"}, "there is no folder .*/no/such to run the command in"),
        ({"cwd": "/etc/hostname"}, "there is no folder /etc/hostname"),
        ({"log": "no/such/file"}, "cannot write the log .*/no/such/file: No such file"),
        ({"log": "."}, "cannot write the log .*: Is a directory"),
        ({"log": "pipe"}, "it is no regular file"),
        ({"log": "/dev/null"}, "it is no regular file"),
        ({"name": "../x"}, "is no name"),
        ({"name": "x/y"}, "is no name"),
        ({"name": ""}, "is no name"),
        ({"name": "a" * 65}, "is no name"),
        ({"name": "é漢\ud800"}, "is no name"),
        ({"name": "a\n"}, "is no name"),
    ],
)
def test_request_that_cannot_be_met_is_refused_in_one_line(host: Any, fields: dict[str, Any], why: str) -> None:
    os.mkfifo(host.folder / "pipe")
    with pytest.raises(RefusedError, match=why) as refused:
        host.ask("launch", spec={**host.spec("sleep", "60"), **fields})
    assert refused.value.kind == "usage"
    assert not list((host.state / "vigil" / "servers").glob("[!.]*"))
    host.nothing_left()


def test_pipe_with_a_reader_is_refused_as_a_log_too(host: Any) -> None:
    os.mkfifo(host.folder / "pipe")
    reader = os.open(host.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(RefusedError, match="it is no regular file"):
        host.launch("sleep", "60", log="pipe")
    os.close(reader)


def test_log_of_the_user_is_appended_to_and_its_path_made_whole(host: Any) -> None:
    (host.folder / "my log.txt").write_text("yesterday\n")
    started = host.launch("echo", "today", log="my log.txt")
    host.ended(started)
    assert started["life"]["log"] == str(host.folder / "my log.txt")
    assert started["life"]["log_offset"] == len("yesterday\n")
    assert host.log(started) == "yesterday\ntoday\n"
    assert host.ask("tail", name="s1", limit_bytes=1000)["text"] == "today\n"


def test_port_that_is_taken_is_refused(host: Any) -> None:
    code = "import socket,time; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout
    port = int(holder.stdout.readline())
    with pytest.raises(RefusedError, match=f"port {port} is already taken by pid {holder.pid}"):
        host.launch("sleep", "60", port=port)
    holder.kill()
    holder.communicate()


def test_launcher_sleeps_and_is_small(host: Any) -> None:
    started = host.launch("sleep", "60")
    pid = started["life"]["launcher"]["pid"]

    def switches() -> int:
        text = Path(f"/proc/{pid}/status").read_text()
        return sum(int(line.split()[1]) for line in text.splitlines() if "ctxt_switches" in line)

    wait_for(lambda: "sigtimedwait" in Path(f"/proc/{pid}/wchan").read_text(), "the launcher's sleep")
    before = switches()
    time.sleep(1.0)  # nothing to wait for: the fact is that nothing happens
    assert switches() == before
    rollup = dict(line.split()[:2] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    assert int(rollup["Rss:"]) < 12 * 1024
    assert Path(f"/proc/{pid}/comm").read_text() == "vigil-launcher\n"
    host.stop()
