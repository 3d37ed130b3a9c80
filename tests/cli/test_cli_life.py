"""Who lives and who dies: interrupts, kills, broken pipes, and several of us at one server."""

import json
import signal
import socket
import subprocess

import pytest
from vigil_cli import COMMAND, Running, Vigil, alive, until

SLOW = ("--load", "4s", "--warmup", "0s")  # still loading when it is signalled, on a busy machine too
QUICK = ("--load", "0.1s", "--warmup", "0s")


def pid_of(vigil: Vigil) -> int:
    """Return the pid of the server called s, from its state."""

    def look() -> int:
        rows = json.loads(vigil("ps", "--json").out or "[]")
        return rows[0]["pid"] if rows and rows[0]["pid"] else 0

    return int(until(look, "the server's pid"))


def up(vigil: Vigil, *options: str, fake: tuple[str, ...] = SLOW) -> Running:
    running = vigil.start("up", "--json", "--name", "s", *options, "--", *vigil.fake(*fake))
    running.until_err("starting")
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_server_outlives_our_end(vigil: Vigil, number: signal.Signals) -> None:
    watching = up(vigil)
    watching.signal(number)
    done = watching.end()
    taken_up = vigil("wait", "s", "--json")

    assert done.rc == (130 if number == signal.SIGINT else -number)
    assert taken_up.word == "ready"
    assert taken_up.verdict["attempts"][0]["n"] == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_attached_server_ends_with_us(vigil: Vigil, number: signal.Signals) -> None:
    watching = up(vigil, "--attached", fake=("--load", "60s", "--workers", "2"))
    pid = pid_of(vigil)
    watching.signal(number)
    watching.end()

    until(lambda: not alive(pid), "the server's end")
    until(lambda: not vigil.processes(), "the end of its tree")
    assert '"verdict":"stopped"' in vigil("ps", "--json").out


def test_attached_server_that_is_ready_lives_while_we_follow(vigil: Vigil) -> None:
    watching = up(vigil, "--attached", "--follow", fake=QUICK)
    watching.until_out('"ready"')
    pid = pid_of(vigil)
    assert alive(pid)
    watching.signal(signal.SIGINT)

    assert watching.end().rc == 130
    until(lambda: not alive(pid), "the server's end")


def test_stop_after_a_kill_of_us_leaves_nothing(vigil: Vigil) -> None:
    watching = up(vigil, fake=("--load", "60s", "--workers", "2"))
    pid = pid_of(vigil)
    watching.signal(signal.SIGKILL)
    watching.end()
    stopped = vigil("stop", "s")

    assert (stopped.rc, stopped.err) == (0, "")
    assert stopped.out.startswith("s stopped (exit code 0")
    assert not alive(pid)
    assert vigil.processes() == []
    with socket.create_server(("127.0.0.1", vigil.port)):
        pass


def test_stop_while_somebody_watches_is_told_to_him(vigil: Vigil) -> None:
    watching = up(vigil, fake=("--load", "60s"))
    vigil("stop", "s")
    done = watching.end()

    assert (done.rc, done.word) == (11, "stopped")
    assert "stopped by " in done.verdict["reason"]
    assert vigil("stop", "s").out == "s was not running\n"


def test_stop_of_one_that_ignores_it_is_done_after_the_grace(vigil: Vigil) -> None:
    vigil.up(fake=(*QUICK, "--ignore-term"))
    pid = pid_of(vigil)
    done = vigil("stop", "s", "--grace", "0.3s")

    assert done.out == "s stopped (signal 9)\n"
    assert not alive(pid)


def test_two_watchers_say_the_same(vigil: Vigil) -> None:
    first = up(vigil)
    others = [vigil.start("wait", "s", "--json") for _ in range(2)]
    done = [running.end() for running in (first, *others)]

    assert [(one.rc, one.word) for one in done] == [(0, "ready")] * 3
    assert len({one.verdict["attempts"][0]["pid"] for one in done}) == 1


def test_name_of_a_dead_server_can_be_used_again(vigil: Vigil) -> None:
    died = vigil.up(fake=(*QUICK, "--die", "exit:1"))
    again = vigil.up()

    assert (died.word, again.word) == ("crashed", "ready")
    assert len(again.verdict["attempts"]) == 1


def test_reader_who_goes_away_is_no_fault_of_the_server(vigil: Vigil) -> None:
    line = " ".join(f"'{word}'" for word in [*COMMAND, "up", "--name", "s", "--", *vigil.fake(*QUICK)])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line} 2>err | true"],
        env=vigil.env, cwd=vigil.folder, check=False, timeout=60, capture_output=True, text=True,
    )  # fmt: skip

    err = (vigil.folder / "err").read_text()
    assert done.returncode in {0, 141}
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    assert vigil("wait", "s", "--json").word == "ready"


def test_progress_to_a_closed_stderr_does_not_end_us(vigil: Vigil) -> None:
    command = " ".join(f"'{word}'" for word in [*COMMAND, "up", "--json", "--name", "s", "--", *vigil.fake(*QUICK)])
    done = subprocess.run(
        ["bash", "-c", f"{command} 2>&-"], env=vigil.env, cwd=vigil.folder, check=False, timeout=60, capture_output=True
    )

    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "ready"


def test_logs_are_followed_until_the_end(vigil: Vigil) -> None:
    script = "echo first; until [ -e go ]; do sleep 0.05; done; for n in 1 2 3; do echo line $n; done; printf unfinished; exit 3"
    watching = vigil.start("up", "--name", "s", "--", "sh", "-c", script)
    until(
        lambda: "first" in vigil("logs", "s").out if (vigil.state / "vigil/servers/s/current").exists() else "",
        "the first line",
    )
    following = vigil.start("logs", "-f", "s")
    following.until_out("first")
    (vigil.folder / "go").touch()
    done = following.end()

    assert done.rc == 0
    assert done.out == "first\nline 1\nline 2\nline 3\nunfinished\n"
    assert watching.end().rc == 4


def test_logs_give_as_many_lines_as_asked(vigil: Vigil) -> None:
    vigil(
        "run",
        "--name",
        "s",
        "--",
        "sh",
        "-c",
        "for n in 1 2 3 4; do echo $n; done; printf '10%%\\r50%%\\r100%%\\n\\nend'",
    )

    assert vigil("logs", "s", "-n", "0").out == ""
    assert vigil("logs", "s", "-n", "1").out == "end\n"
    assert vigil("logs", "s", "-n", "3").out == "100%\n\nend\n"
    assert vigil("logs", "s").out == "1\n2\n3\n4\n100%\n\nend\n"


def test_logs_begin_where_this_start_began(vigil: Vigil) -> None:
    log = vigil.folder / "own.log"
    log.write_text("yesterday\n")
    vigil("run", "--name", "s", "--log", "own.log", "--", "echo", "today")

    assert vigil("logs", "s").out == "today\n"
    assert log.read_text() == "yesterday\ntoday\n"


def test_state_that_cannot_be_written_starts_nothing(vigil: Vigil) -> None:
    (vigil.folder / "file").write_text("")
    done = vigil("up", "--json", "--", *vigil.fake(), env={"XDG_STATE_HOME": f"{vigil.folder}/file"})

    assert done.rc == 1
    assert "nothing was started" in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_time_left_is_expected_from_earlier_starts(vigil: Vigil) -> None:
    first = vigil.up(fake=SLOW)
    vigil("stop", "s")
    again = vigil.up("--for", "0.3s", fake=SLOW)
    taken_up = vigil("wait", "s", "--json", "--progress-every", "0.1s")

    assert first.verdict["expected_s"] is None
    assert again.verdict["expected_s"] == first.verdict["since_s"]
    assert 0 <= taken_up.verdict["expected_s"] < first.verdict["since_s"]
    assert " left" in again.err


def test_show_tells_what_is_and_what_was(vigil: Vigil) -> None:
    vigil.up()
    running = vigil("show", "s")
    vigil("stop", "s")
    stopped = vigil("show", "s")
    whole = json.loads(vigil("show", "s", "--json").out)

    assert "verdict  ready" in running.out
    assert "next:  vigil stop s" in running.out
    assert "verdict  stopped" in stopped.out
    assert "the last verdict, given before that:" in stopped.out
    assert "next:" not in stopped.out
    assert whole["verdict"] == "stopped"
    assert whole["last_verdict"]["verdict"] == "ready"


def test_replay_says_the_same_again(vigil: Vigil) -> None:
    trace = vigil.folder / "t.jsonl"
    lived = vigil.up("--trace", "t.jsonl", fake=(*QUICK, "--die", "import", "--after", "0.1s"))
    replayed = vigil("replay", "t.jsonl", "--json")
    cut = trace.read_bytes()
    trace.write_bytes(cut[:-20])
    shorter = vigil("replay", "t.jsonl", "--json")

    assert replayed.rc == lived.rc == 4
    assert replayed.verdict["cause"] == lived.verdict["cause"]
    assert shorter.rc in {4, 12}
    assert shorter.err == ""


def test_ps_lists_the_newest_first(vigil: Vigil) -> None:
    vigil.up()
    vigil("run", "--name", "job", "--", "true")
    listed = vigil("ps")

    assert [line.split()[0] for line in listed.out.splitlines()] == ["NAME", "job", "s"]
    assert "finished" in listed.out
    assert vigil.url in listed.out


def test_server_on_a_host_that_is_gone_is_shown_as_it_was_last_known(vigil: Vigil) -> None:
    way = vigil.folder / "way"
    way.write_text(f'#!/bin/sh\ntest -e {vigil.folder}/gone && exit 255\nexec "$@"\n')
    way.chmod(0o755)
    there = ("--reach", str(way))
    vigil("up", *there, "--name", "s1", "--", *vigil.fake("--load", "0.1s", "--warmup", "0s"))
    (vigil.folder / "gone").touch()
    shown, waited = vigil("show", "s1", *there), vigil("wait", "s1", *there)
    (vigil.folder / "gone").unlink()
    vigil("stop", "s1", *there)

    assert (shown.rc, waited.rc) == (10, 10)
    for told in (shown.err, waited.err):
        assert "s1 was last known " in told
        assert told.rstrip().endswith(" ago: ready")
