# ruff: noqa: F811, F401 - pytest finds fixtures by the names of arguments
"""Ask a desk through every kind of reach, whole and broken."""

import contextlib
import os
import select
import shlex
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from sshd import HOST, Sshd, sshd
from vigil.errors import NoPythonError, StateError, UnreachableError, UsageError
from vigil.hosts import CommandError, Reach, call, reach_of

ODD = [
    "a b",
    "",
    "'",
    '"',
    "$HOME",
    "`id`",
    "\n",
    "é漢",
    b"\xff".decode("utf-8", "surrogateescape"),
    "!x",
    "\\",
    "*",
    "-x",
    "~",
]
PRINT = "import sys, os; print([os.fsencode(word) for word in sys.argv[1:]], [os.environb[b'ODD']])"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def ask(reach: Reach, verb: str, **args: Any) -> dict[str, Any]:
    return anyio.run(lambda: call(reach, verb, **args))


def spec(*command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "s1", "command": list(command), "plan": {}, **fields}


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def far(sshd: Sshd, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A host that `ssh vigil-test` reaches, with the state folder of this test."""
    monkeypatch.setenv("PATH", f"{sshd.path}:{os.environ['PATH']}")
    sshd.config.write_text(f"SendEnv XDG_STATE_HOME\n{sshd.config.read_text()}")
    yield sshd
    sshd.proxy.mend()


def started_and_read_back(reach: Reach) -> str:
    started = ask(reach, "launch", spec=spec("python3", "-I", "-S", "-c", PRINT, *ODD, env={"ODD": "".join(ODD)}))
    log = Path(started["life"]["log"])
    with contextlib.suppress(UsageError):
        while ask(reach, "show", name="s1")["launcher_alive"]:
            pass
    return log.read_text()


def expected() -> str:
    words = [word.encode("utf-8", "surrogateescape") for word in ODD]
    return f"{words} {[b''.join(words)]}\n"


def test_words_come_through_here() -> None:
    assert started_and_read_back(Reach()) == expected()


def test_words_come_through_ssh(far: Sshd) -> None:
    assert started_and_read_back(reach_of(HOST, None)) == expected()


@pytest.mark.parametrize("prefix", ["sh -c 'exec \"$@\"' sh", "env", "nice -n 1", "env -u HOME setsid -w"])
def test_words_come_through_a_command(prefix: str) -> None:
    assert started_and_read_back(reach_of(None, prefix)) == expected()


@pytest.mark.parametrize(
    "noise",
    [
        "echo Welcome",
        "printf 'no new line'",
        "echo '{\"ok\": 1'",
        'echo \'{"kind": "Reached"}\'',
        "printf '\\377\\376\\0'",
        "echo a warning >&2",
        "head -c 300000 /dev/zero",
    ],
)
def test_noise_of_a_login_shell_is_passed_over(tmp_path: Path, noise: str) -> None:
    login = script(tmp_path, "login", f'#!/bin/sh\n{noise}\n"$@"\ncode=$?\n{noise}\nexit $code\n')
    assert ask(reach_of(None, str(login)), "list") == {"servers": []}


def test_answer_of_the_desk_names_the_host() -> None:
    with pytest.raises(UsageError, match=r"^env: no server named s1 here"):
        ask(reach_of(None, "env"), "show", name="s1")
    with pytest.raises(UsageError, match=r"^no server named s1 here"):
        ask(Reach(), "show", name="s1")
    with pytest.raises(CommandError, match=r"cannot run no-such-command: not found"):
        ask(Reach(), "launch", spec=spec("no-such-command"))


def test_state_folder_that_cannot_be_used_is_a_state_error(state: Path) -> None:
    state.write_text("")
    with pytest.raises(StateError, match="nothing was started"):
        ask(Reach(), "launch", spec=spec("true"))


def test_missing_python_is_named() -> None:
    for prefix in ("env -i PATH=/nowhere", "sh -c 'PATH=/nowhere; \"$@\"' sh"):
        with pytest.raises(NoPythonError, match=r"no python3 >= 3\.9 there"):
            ask(reach_of(None, prefix), "list")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (1, 'OCI runtime exec failed: exec: "python3": executable file not found in $PATH: unknown'),
        (127, "bash: line 1: python3: command not found"),
        (126, "whatever"),
    ],
)
def test_missing_python_in_a_container_is_named(tmp_path: Path, code: int, line: str) -> None:
    runtime = script(tmp_path, "docker", f"#!/bin/sh\necho {shlex.quote(line)} >&2\nexit {code}\n")
    with pytest.raises(NoPythonError, match=r"no python3 >= 3\.9 there"):
        ask(reach_of(None, f"{runtime} exec -i c"), "list")


def test_old_python_is_refused_with_its_version(tmp_path: Path) -> None:
    text = f"#!{sys.executable}\nimport sys\nsys.version_info = (3, 8, 10, 'final', 0)\nexec(sys.argv[4])\n"
    script(tmp_path, "python3", text)
    with pytest.raises(NoPythonError, match=r"python3 there is 3\.8; 3\.9 or newer is needed"):
        ask(reach_of(None, f"env PATH={tmp_path}"), "list")


def test_command_that_is_not_here_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match="cannot run no-such-reach"):
        ask(reach_of(None, "no-such-reach"), "list")


def test_reach_that_fails_is_told_by_its_last_line() -> None:
    with pytest.raises(UnreachableError, match=r"the reach ended with 3: Error: no such container"):
        ask(reach_of(None, "sh -c 'echo Error: no such container >&2; exit 3'"), "list")


def test_words_of_a_reach_cannot_touch_the_terminal() -> None:
    with pytest.raises(UnreachableError) as raised:
        ask(reach_of(None, "sh -c 'printf \"\\033[31m\\033]0;x\\007\\rred\" >&2; exit 3'"), "list")
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_flood_is_cut_off() -> None:
    with pytest.raises(UnreachableError, match="more than 32 MiB came back, and no answer"):
        ask(reach_of(None, "sh -c 'exec yes'"), "list")


def test_flood_of_complaints_is_cut_off() -> None:
    with pytest.raises(UnreachableError, match="no answer within 1 s"):
        ask(reach_of(None, "sh -c 'exec yes >&2'"), "list", timeout_s=1)


@pytest.mark.parametrize("reply", ["[1]", "1", '{"ok"', '{"other": 1}', "{" * 100_000, ""])
def test_reply_that_is_none_is_unreachable(tmp_path: Path, reply: str) -> None:
    (tmp_path / "reply").write_text(reply)
    with pytest.raises(UnreachableError, match="the reach ended with 0"):
        ask(reach_of(None, f"sh -c 'cat {tmp_path}/reply'"), "list")


def test_silence_ends_with_the_patience_and_leaves_no_process(tmp_path: Path) -> None:
    mute = f"sh -c 'sleep 600 & echo $! > {tmp_path}/pid; wait'"
    with pytest.raises(UnreachableError, match="no answer within 1 s"):
        ask(reach_of(None, mute), "list", timeout_s=1)
    stat = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/stat")
    with contextlib.suppress(OSError):  # gone; what was killed may take a moment to die
        deadline_s = time.monotonic() + 10
        while stat.read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}:
            assert time.monotonic() < deadline_s
            select.select([], [], [], 0.01)


def test_child_of_the_reach_that_keeps_standard_error_does_not_hold_us_up(tmp_path: Path) -> None:
    """A master of the user's ssh (`ControlPersist`) does so."""
    login = script(tmp_path, "login", f'#!/bin/sh\nsetsid sleep 600 >/dev/null 2>&2 & echo $! > {tmp_path}/pid\n"$@"\n')
    assert ask(reach_of(None, str(login)), "list", timeout_s=10) == {"servers": []}
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_host_that_does_not_resolve_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"the host no-such-host\.invalid does not resolve") as raised:
        ask(reach_of("no-such-host.invalid", None), "list")
    assert raised.value.exit_code == 2


def test_refused_connection_is_unreachable(far: Sshd) -> None:
    far.proxy.close()
    with pytest.raises(UnreachableError, match="Connection refused") as raised:
        ask(reach_of(HOST, None), "list")
    assert raised.value.exit_code == 10


def test_refused_key_is_unreachable_and_says_why(far: Sshd) -> None:
    (far.folder / "authorized_keys").write_text("")
    with pytest.raises(UnreachableError, match=r"vigil-test: .*Permission denied \(publickey"):
        ask(reach_of(HOST, None), "list")


def test_unknown_host_key_is_unreachable_and_says_why(far: Sshd) -> None:
    (far.folder / "known_hosts").write_text("")
    with pytest.raises(UnreachableError, match="Host key verification failed"):
        ask(reach_of(HOST, None), "list")


def test_connection_cut_in_the_middle_of_a_stop_is_unreachable_and_the_stop_goes_on(far: Sshd) -> None:
    reach = reach_of(HOST, None)
    deaf = "trap 'echo asked' TERM; echo up; while :; do sleep 0.05; done"
    log = Path(ask(reach, "launch", spec=spec("sh", "-c", deaf))["life"]["log"])

    def cut_when_asked() -> None:
        while "asked" not in log.read_text():
            pass
        far.proxy.cut()

    cutter = threading.Thread(target=cut_when_asked)
    cutter.start()
    with pytest.raises(UnreachableError):
        ask(reach, "stop", name="s1", grace_s=30, by="t")
    cutter.join()
    far.proxy.mend()
    assert ask(reach, "stop", name="s1", grace_s=0, by="u")["exit"]["asked_by"] == "t"


def test_server_outlives_a_cut_connection(far: Sshd) -> None:
    started = ask(reach_of(HOST, None), "launch", spec=spec("sleep", "60"))
    far.proxy.cut()
    far.proxy.mend()
    known = ask(reach_of(HOST, None), "show", name="s1")
    assert known["alive"]
    for pid in (started["life"]["main"]["pid"], started["life"]["launcher"]["pid"]):
        held = {int(path.name): str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
        assert not [target for target in held.values() if "socket" in target or "pipe" in target]
    assert ask(reach_of(HOST, None), "stop", name="s1", grace_s=5, by="t")["exit"]["signal"] == 15


def test_users_own_control_master_is_used_and_does_not_hold_us_up(far: Sshd) -> None:
    sshd_lines = far.config.read_text()
    far.config.write_text(f"ControlMaster auto\nControlPath {far.folder}/mux\nControlPersist 60\n{sshd_lines}")
    for _ in range(2):
        assert ask(reach_of(HOST, None), "list", timeout_s=20) == {"servers": []}
    anyio.run(lambda: anyio.run_process(["ssh", "-O", "exit", HOST], check=False))
