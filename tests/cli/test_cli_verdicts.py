"""Each verdict with its exit code and its JSON, as scripts rely on them (DESIGN.md, section 4)."""

import json
import signal
import sys
from pathlib import Path

import pytest
from vigil_cli import FAKES, Result, Vigil, until

JOB = (sys.executable, str(FAKES / "job.py"), "--step-time", "10ms", "--steps", "5")
# The design's object, and what was added to it; nothing else, and nothing less.
FIELDS = {
    "schema", "name", "verdict", "exit_code", "since_s", "phase", "ready_level", "owner", "cause", "evidence", "attempts",
    "phases", "tail", "reason", "progress", "expected_s", "last_line", "log", "host", "engine", "url", "model", "warnings",
    "changes", "changes_since_s", "expectations",
}  # fmt: skip
CAUSE_FIELDS = {
    "code",
    "kind",
    "file",
    "line",
    "text",
    "rank",
    "sure",
    "advice",
    "title",
    "fingerprint",
    "retry",
    "around",
    "when",
}
ATTEMPT_FIELDS = {"n", "pid", "started_s", "ended_s", "exit", "cause", "ready_s", "signal"}


def said(done: Result) -> tuple[int, str]:
    """Return exit code and word, which must agree with what the object says."""
    assert done.out.count("\n") == 1, done.out
    assert done.verdict["exit_code"] == done.rc
    return done.rc, done.word


def test_ready_is_zero(vigil: Vigil) -> None:
    done = vigil.up()

    assert said(done) == (0, "ready")
    assert done.verdict["ready_level"] == "token"
    assert done.verdict["owner"] == "verified"
    assert done.verdict["cause"] is None
    assert done.verdict["url"] == vigil.url
    assert done.verdict["model"] == "m"
    assert "starting" in done.err
    assert "{" not in done.err


def test_crashed_is_four_and_points_at_the_line(vigil: Vigil) -> None:
    done = vigil(
        "up",
        "--json",
        "--name",
        "s",
        "--",
        sys.executable,
        str(FAKES / "bin" / "sglang"),
        "serve",
        "--port",
        str(vigil.port),
        "--bogus",
        "1",
    )

    assert said(done) == (4, "crashed")
    verdict = done.verdict
    assert set(verdict) == FIELDS
    assert set(verdict["cause"]) == CAUSE_FIELDS
    assert verdict["cause"]["code"] == "FLAG001"
    assert verdict["cause"]["file"] == verdict["log"]
    lines = Path(verdict["log"]).read_text().splitlines()
    assert verdict["cause"]["text"] in lines[verdict["cause"]["line"] - 1]  # counted from 1
    assert "--bogus" in verdict["cause"]["text"]
    (attempt,) = verdict["attempts"]
    assert set(attempt) == ATTEMPT_FIELDS
    assert (attempt["n"], attempt["exit"], attempt["signal"], attempt["cause"]) == (1, 2, None, "FLAG001")
    assert 0 <= attempt["started_s"] <= attempt["ended_s"] <= verdict["since_s"] + 0.001
    assert all(set(phase) == {"name", "from_s", "to_s"} for phase in verdict["phases"])
    assert next(phase["name"] for phase in verdict["phases"]) == "importing"
    facts = Path(next((vigil.state / "vigil" / "traces").iterdir())).read_text().splitlines()[1:]
    for evidence in verdict["evidence"]:
        assert set(evidence) == {"fact", "text"}
        assert evidence["fact"] is None or 1 <= evidence["fact"] <= len(facts)
    assert any(
        json.loads(facts[one["fact"] - 1])["kind"] in {"RootExited", "MainExited"}
        for one in verdict["evidence"]
        if one["fact"]
    )


def test_killed_by_a_signal_is_four_and_names_it(vigil: Vigil) -> None:
    done = vigil.up(fake=("--load", "5s", "--die", "signal:9", "--after", "0.1s"))

    assert said(done) == (4, "crashed")
    assert (done.verdict["attempts"][0]["exit"], done.verdict["attempts"][0]["signal"]) == (None, 9)


def test_crash_loop_is_five(vigil: Vigil) -> None:
    done = vigil("up", "--json", "--", str(FAKES / "loop.sh"), "--pause", "0.02", "--", str(FAKES / "flash.sh"))

    assert said(done) == (5, "crash_looping")
    assert [one["n"] for one in done.verdict["attempts"]][:2] == [1, 2]
    assert done.verdict["attempts"][0]["ended_s"] is not None


def test_refused_is_three_and_leaves_the_other_program_alone(vigil: Vigil) -> None:
    squatter = vigil.begin(sys.executable, str(FAKES / "squatter.py"), "--port", str(vigil.port))
    until(lambda: vigil("wait", vigil.url, "--json", "--for", "0.2s").verdict["owner"], "the squatter")
    done = vigil.up()

    assert said(done) == (3, "refused")
    assert done.verdict["cause"]["code"] == "PORT001"
    assert str(squatter.pid) in done.verdict["reason"]
    assert squatter.poll() is None
    assert not list((vigil.state / "vigil").glob("servers/*/starts/*"))


def test_stalled_is_six_and_leaves_it_running(vigil: Vigil) -> None:
    done = vigil.up("--time-scale", "0.01", fake=("--load", "5s", "--stick", "sleep", "--after", "0.1s"))

    assert said(done) == (6, "stalled")
    assert done.verdict["attempts"][0]["ended_s"] is None
    assert vigil("ps", "--json").out.count('"alive":true') == 1


def test_timed_out_is_seven_and_leaves_it_running(vigil: Vigil) -> None:
    done = vigil.up("--timeout", "0.5s", "--time-scale", "0.2", fake=("--load", "60s"))

    assert said(done) == (7, "timed_out")
    assert vigil("ps", "--json").out.count('"alive":true') == 1


def test_timed_out_stops_it_where_that_was_asked(vigil: Vigil) -> None:
    done = vigil.up("--timeout", "0.5s", "--time-scale", "0.2", "--on-timeout", "stop", fake=("--load", "60s"))

    assert said(done) == (7, "timed_out")
    assert vigil("ps", "--json").out.count('"alive":true') == 0


def test_unhealthy_is_eight(vigil: Vigil) -> None:
    done = vigil.up("--time-scale", "0.05", fake=("--load", "0.1s", "--warmup", "0s", "--lie", "fail", "--at", "bound"))

    assert said(done) == (8, "unhealthy")
    assert "HTTP 500" in done.verdict["reason"]


def test_degraded_is_nine_where_an_expectation_failed(vigil: Vigil) -> None:
    done = vigil.up("--model", "other")

    assert said(done) == (9, "degraded")
    assert "not other" in done.verdict["reason"]


def test_unreachable_is_ten(vigil: Vigil) -> None:
    done = vigil("up", "--json", "--reach", "sh -c 'echo no way in >&2; exit 9'", "--", *vigil.fake())

    assert done.rc == 10
    assert "no way in" in done.err
    assert done.out == ""


def test_stopped_is_eleven_for_who_watches_and_zero_for_who_asked(vigil: Vigil) -> None:
    watching = vigil.start(
        "up", "--json", "--name", "s", "--follow", "--", *vigil.fake("--load", "0.1s", "--warmup", "0s")
    )
    watching.until_out('"verdict":"ready"')
    stopping = vigil("stop", "s", "--json")
    done = watching.end()

    assert (stopping.rc, stopping.word) == (0, "stopped")
    assert (done.rc, done.word) == (11, "stopped")
    assert vigil("wait", "s", "--json").rc == 11


def test_starting_is_twelve_and_wait_takes_it_up(vigil: Vigil) -> None:
    first = vigil.up("--for", "0.5s", fake=("--load", "2s", "--warmup", "0s"))
    then = vigil("wait", "s", "--json")

    assert said(first) == (12, "starting")
    assert said(then) == (0, "ready")
    assert then.verdict["attempts"][0]["pid"] == first.verdict["attempts"][0]["pid"]


def test_finished_is_zero_for_a_job(vigil: Vigil) -> None:
    done = vigil("run", "--json", "--", *JOB)

    assert said(done) == (0, "finished")
    assert vigil("ps", "--json").out.count('"verdict":"finished"') == 1


def test_job_that_fails_is_four(vigil: Vigil) -> None:
    done = vigil("run", "--json", "--", *JOB, "--die", "exit:5", "--at-step", "2")

    assert said(done) == (4, "crashed")
    assert done.verdict["attempts"][0]["exit"] == 5


def test_server_that_exits_with_zero_has_crashed(vigil: Vigil) -> None:
    done = vigil("up", "--json", "--", "true")

    assert said(done) == (4, "crashed")


def test_following_prints_an_object_a_verdict(vigil: Vigil) -> None:
    done = vigil.up(
        "--follow", fake=("--load", "0.1s", "--warmup", "0s", "--die", "exit:1", "--at", "ready", "--after", "0.5s")
    )

    assert [json.loads(line)["verdict"] for line in done.out.splitlines()] == ["ready", "crashed"]
    assert done.rc == 4


@pytest.mark.parametrize("word", ["ready", "crashed"])
def test_text_says_it_on_one_screen(vigil: Vigil, word: str) -> None:
    fault = () if word == "ready" else ("--die", "import", "--after", "0.1s")
    done = vigil("up", "--name", "s", "--", *vigil.fake("--load", "0.4s", "--warmup", "0s", *fault))

    assert done.out.startswith(word.upper())
    assert len(done.out.splitlines()) <= 24
    assert max(map(len, done.out.splitlines())) <= 160
    assert "server.log" in done.out


def test_ready_line_is_not_said_to_have_no_cause(vigil: Vigil) -> None:
    vigil.up()
    vigil("stop", "s")
    stopped = vigil("wait", "s")

    assert stopped.out.startswith("STOPPED")
    assert "no cause" not in stopped.out


def test_on_verdict_gets_the_object_on_its_input(vigil: Vigil) -> None:
    done = vigil.up("--on-verdict", f"cat > {vigil.folder}/heard")

    assert json.loads((vigil.folder / "heard").read_text()) == done.verdict


def test_on_verdict_that_fails_changes_nothing(vigil: Vigil) -> None:
    done = vigil.up("--on-verdict", "echo noise; exit 7")

    assert said(done) == (0, "ready")
    assert "--on-verdict ended with 7" in done.err


def test_progress_comes_as_often_as_asked(vigil: Vigil) -> None:
    often = vigil("run", "--progress-every", "0.1s", "--", *JOB[:-1], "80")
    seldom = vigil("run", "--progress-every", "10m", "--", *JOB[:-1], "80")

    assert often.err.count("starting") > seldom.err.count("starting") >= 1


def test_env_goes_to_the_server_and_wins_over_the_file(vigil: Vigil) -> None:
    (vigil.folder / "env").write_text("# comment\nexport A=file\nB='quoted value'\n\nC=has=equals\n")
    done = vigil("run", "--json", "--env-file", "env", "--env", "A=option", "--", "sh", "-c", 'echo "$A|$B|$C"')

    assert Path(done.verdict["log"]).read_text() == "option|quoted value|has=equals\n"


def test_interrupt_leaves_the_server_and_says_how_to_go_on(vigil: Vigil) -> None:
    watching = vigil.start("up", "--name", "s", "--", *vigil.fake("--load", "2s", "--warmup", "0s"))
    watching.until_err("starting")
    watching.signal(signal.SIGINT)
    done = watching.end()

    assert done.rc == 130
    assert "vigil wait s" in done.err
    assert "vigil stop s" in done.err
    assert "Traceback" not in done.err
    assert vigil("wait", "s", "--json").word == "ready"
