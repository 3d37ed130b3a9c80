"""What a user types wrong: one line that says what is wrong and what to do, exit 2, nothing started."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from vigil_cli import FAKES, Result, Vigil, result

from vigil.cli.app import main

SERVER = ("--", "{py}", "{fake}", "--port", "{port}")
MISUSES = {
    "no command": ((), "Missing command"),
    "unknown option": (("--bogus",), "--bogus"),
    "unknown command": (("frobnicate",), "frobnicate"),
    "near miss of a command": (("upp",), "Did you mean 'up'"),
    "up without a command": (("up",), "no command was given"),
    "up with an empty command": (("up", "--"), "no command was given"),
    "up with an empty word": (("up", "--", ""), "the command is empty"),
    "run without a command": (("run", "--json"), "no command was given"),
    "unknown option of up": (("up", "--bogus", *SERVER), "--bogus"),
    "option without a value": (("up", "--timeout"), "--timeout"),
    "no duration": (("up", "--timeout", "soon", *SERVER), "--timeout 'soon'"),
    "an unknown unit": (("up", "--timeout", "5parsecs", *SERVER), "5parsecs"),
    "a duration below zero": (("up", "--timeout", "-5s", *SERVER), "'-5s'"),
    "a duration beyond belief": (("up", "--timeout", "9" * 400 + "d", *SERVER), "ten years"),
    "--for without sense": (("up", "--for", "a while", *SERVER), "--for 'a while'"),
    "--progress-every without sense": (("up", "--progress-every", "often", *SERVER), "--progress-every"),
    "--grace without sense": (("stop", "x", "--grace", "some"), "--grace"),
    "--env without =": (("up", "--env", "sekret-without-name", *SERVER), "NAME=VALUE"),
    "--env with a bad name": (("up", "--env", "9X=sekret", *SERVER), "'9X' is no name"),
    "--env-file that is missing": (("up", "--env-file", "{dir}/none", *SERVER), "No such file"),
    "--env-file that is a folder": (("up", "--env-file", "{dir}", *SERVER), "Is a directory"),
    "--env-file of bytes": (("up", "--env-file", "{dir}/bytes", *SERVER), "not UTF-8"),
    "--env-file with a NUL": (("up", "--env-file", "{dir}/nul", *SERVER), "NUL"),
    "--env-file without =": (("up", "--env-file", "{dir}/words", *SERVER), "line 2 is not NAME=VALUE"),
    "port out of range": (("up", "--", "{py}", "{fake}", "--port", "99999"), "port 99999 is out of range"),
    "port below zero": (("up", "--", "{py}", "{fake}", "--port=-1"), "port -1 is out of range"),
    "port out of range in a shell text": (("up", "--", "bash", "-c", "sglang serve --model-path m --port 70000"), "port 70000"),
    "port that nobody knows": (("up", "--", "{py}", "{fake}", "--port", "0"), "port 0"),
    "port out of range in a URL": (("wait", "http://localhost:99999"), "out of range"),
    "port that is no number": (("wait", "http://localhost:http"), "is no address"),
    "URL without scheme": (("wait", "localhost:8000"), "http://HOST:PORT"),
    "URL of another scheme": (("wait", "ftp://localhost:8000"), "http://HOST:PORT"),
    "URL without host": (("wait", "http://"), "http://HOST:PORT"),
    "URL with a password": (("wait", "http://me:sekret@localhost:80"), "--api-key-env"),
    "--url without scheme": (("up", "--url", "localhost:8000", *SERVER), "http://HOST:PORT"),
    "host that does not resolve": (("up", "--on", "nosuch.invalid", *SERVER), "nosuch.invalid does not resolve"),
    "host that is empty": (("up", "--on", "", *SERVER), "--on is empty"),
    "host that is an option": (("up", "--on", "-oProxyCommand=x", *SERVER), "no host name"),
    "--on with --reach": (("up", "--on", "h", "--reach", "env", *SERVER), "exclude each other"),
    "--reach with an open quote": (("up", "--reach", "docker exec 'x", *SERVER), "close the quotes"),
    "--reach that is empty": (("up", "--reach", " ", *SERVER), "--reach is empty"),
    "--reach without its program": (("ps", "--reach", "/no/such/program -i"), "no program"),
    "a name with a space": (("up", "--name", "a b", *SERVER), "'a b' is no name"),
    "a name that is a path": (("up", "--name", "../x", *SERVER), "is no name"),
    "a name that ends a line": (("wait", "x\n"), "is no name"),
    "an empty name": (("wait", ""), "is no name"),
    "wait for an unknown name": (("wait", "nobody"), "no server named nobody"),
    "show an unknown name": (("show", "nobody"), "no server named nobody"),
    "logs of an unknown name": (("logs", "nobody"), "no server named nobody"),
    "stop an unknown name": (("stop", "nobody"), "no server named nobody"),
    "stop without a name": (("stop",), "'NAME'"),
    "--api-key-env that is unset": (("up", "--api-key-env", "NOBODY_SET_THIS", *SERVER), "not set here"),
    "--log in a missing folder": (("up", "--log", "{dir}/none/x.log", *SERVER), "No such file"),
    "--log that is a folder": (("up", "--log", "{dir}", *SERVER), "Is a directory"),
    "--cwd that is missing": (("up", "--cwd", "{dir}/none", *SERVER), "no such folder"),
    "--trace in a missing folder": (("up", "--trace", "{dir}/none/t", *SERVER), "no folder"),
    "--ready without sense": (("up", "--ready", "maybe", *SERVER), "token, http, log"),
    "--engine without sense": (("up", "--engine", "steam", *SERVER), "sglang"),
    "--on-timeout without sense": (("up", "--on-timeout", "pray", *SERVER), "leave, stop"),
    "time scale zero": (("up", "--time-scale", "0", *SERVER), "above 0"),
    "time scale that is endless": (("up", "--time-scale", "inf", *SERVER), "above 0"),
    "time scale that is no number": (("up", "--time-scale", "x", *SERVER), "--time-scale"),
    "pid zero": (("wait", "http://127.0.0.1:1", "--pid", "0"), "--pid"),
    "pid that is no number": (("wait", "http://127.0.0.1:1", "--pid", "x"), "--pid"),
    "pid that nobody has": (("wait", "http://127.0.0.1:1", "--pid", "99999999"), "there is no such process"),
    "--match that fits all": (("wait", "http://127.0.0.1:1", "--match", ""), "--match is empty"),
    "lines below zero": (("logs", "x", "-n", "-5"), "--lines"),
    "too many words": (("ps", "extra"), "extra"),
    "a trace that is missing": (("replay", "{dir}/none"), "No such file"),
    "a trace that is a folder": (("replay", "{dir}"), "Is a directory"),
    "a trace that is empty": (("replay", "{dir}/empty"), "is empty"),
    "a trace that is no JSON": (("replay", "{dir}/words"), "line 1"),
    "a trace that is other JSON": (("replay", "{dir}/other"), "is not a trace"),
    "a trace of another schema": (("replay", "{dir}/schema"), "schema 99"),
    "a trace with a broken line": (("replay", "{dir}/broken"), "line 3"),
}  # fmt: skip


@pytest.fixture
def litter(vigil: Vigil) -> Vigil:
    """Files to stumble over."""
    header, tick = b'{"schema":1,"plan":{}}\n', b'{"kind":"Ticked","at_s":1}\n'
    files = {
        "bytes": b"\xff\xfe=1\n", "nul": b"A=\0\n", "words": b"A=1\nsekret words\n", "empty": b"", "other": b'{"a": 1}\n' + tick,
        "schema": b'{"schema":99}\n', "broken": header + tick + b'{"kind":"Ti\n' + tick,
    }  # fmt: skip
    for name, data in files.items():
        (vigil.folder / name).write_bytes(data)
    return vigil


@pytest.fixture
def in_process(
    litter: Vigil, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Run the command line in this process: what is refused starts nothing, and a process for each would take long."""

    def run(*args: str) -> Result:
        monkeypatch.setenv("XDG_STATE_HOME", str(litter.state))
        monkeypatch.chdir(litter.folder)
        monkeypatch.setattr(sys, "argv", ["vigil", *args])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capfd.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return result(code, captured.out.encode(), captured.err.encode())

    return run


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_refused_in_one_line(litter: Vigil, misuse: str, in_process: Callable[..., Result]) -> None:
    words, expected = MISUSES[misuse]
    done = in_process(
        *(
            word.format(py=litter.fake()[0], fake=FAKES / "server.py", port=litter.port, dir=litter.folder)
            for word in words
        )
    )

    assert done.rc == 2, done
    assert done.out == ""
    assert done.err.startswith("vigil: ")
    assert done.err.count("\n") == 1, done.err
    assert expected in done.err
    assert "sekret" not in done.err
    assert not list((litter.state / "vigil").glob("servers/*/starts/*"))
    assert not list((litter.state / "vigil").glob("traces/*"))


def test_misuse_looks_the_same_from_outside(vigil: Vigil) -> None:
    done = vigil("up", "--bogus", "--", "true")

    assert (done.rc, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err


def test_name_in_use_is_refused_and_the_first_lives(vigil: Vigil) -> None:
    first = vigil.up()
    again = vigil("up", "--name", "s", "--", *vigil.fake())

    assert again.rc == 2
    assert "the name s is in use by a running server (pid " in again.err.splitlines()[-1]
    assert "vigil stop s" in again.err
    assert vigil("wait", "s", "--json").verdict["attempts"][0]["pid"] == first.verdict["attempts"][0]["pid"]


def test_options_after_the_command_are_the_commands_own(vigil: Vigil) -> None:
    """`vigil up sglang serve --model-path M` needs no `--`, as with `env` and `docker run`."""
    done = vigil("up", "--json", "sh", "-c", 'echo "$@"; exit 3', "--", "--json", "--name", "x")

    assert done.rc == 4
    assert done.verdict["attempts"][0]["exit"] == 3
    assert Path(done.verdict["log"]).read_text() == "--json --name x\n"


def test_program_that_is_missing_is_refused(vigil: Vigil) -> None:
    done = vigil("up", "--json", "--", "no-such-program", "--port", str(vigil.port))

    assert (done.rc, done.word, done.verdict["cause"]["code"]) == (3, "refused", "CMD001")
    assert "nothing was started" in done.verdict["reason"]


def test_match_that_fits_nothing_is_said(vigil: Vigil) -> None:
    done = vigil("wait", vigil.url, "--match", "no such command line", "--for", "0.5s")

    assert done.rc == 12
    assert "no process has 'no such command line' in its command line yet" in done.err


def test_command_without_an_address_is_told_so(vigil: Vigil) -> None:
    """Nothing can prove such a server ready: better said at once than after a quarter of an hour."""
    done = vigil("up", "--for", "0.3s", "--", "sleep", "60")

    assert done.rc == 12
    assert "it is not known where this command will answer" in done.err
    assert "--url" in done.err


def test_help_of_every_command_says_how(vigil: Vigil) -> None:
    for command in ("up", "wait", "run", "ps", "show", "logs", "stop", "replay"):
        done = vigil(command, "--help")
        assert done.rc == 0
        assert done.out.startswith(f"Usage: vigil {command}")
