"""A whole life through the command line: edited files that nobody loads, expectations, and the table of arguments."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import until
from tiny_sglang import make_environment

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-0123456789abcdef"
READY = 0
DEGRADED = 9


class Place:
    """An environment with the tiny engine, and vigil with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python, self.site = make_environment(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": str(ROOT / "packages" / "vigil" / "src"),
        }
        self.names: list[str] = []

    def vigil(self, *args: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "vigil", *args],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout

    def command(self, *flags: str) -> list[str]:
        return [str(self.python), "-m", "sglang.launch_server", "--port", str(self.port), *flags]

    def up(self, *options: str, flags: tuple[str, ...] = (), name: str = "s") -> tuple[int, dict[str, Any]]:
        self.names.append(name)
        code, out = self.vigil(
            "up", "--no-check", "--json", "--name", name, "--env", "PYTHONPATH=", *options, "--", *self.command(*flags)
        )
        return code, json.loads(out)

    def edit(self, name: str) -> Path:
        path = self.site / name
        path.write_text(path.read_text() + "# edited\n")
        return path

    def snapshot_is_whole(self) -> bool:
        path = self.folder / "state/vigil/servers/s/current/snapshot.json"
        return path.exists() and json.loads(path.read_text()).get("whole") is True


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    ours = Place(tmp_path)
    yield ours
    for name in ours.names:
        ours.vigil("stop", name, "--grace", "1s")


def test_edits_are_told_with_who_loaded_them(place: Place) -> None:
    place.edit("sglang/srt/worker.py")
    place.edit("sglang/srt/unused.py")
    code, first = place.up()
    until(place.snapshot_is_whole, "the snapshot")  # this tiny server was ready before its packages were looked through
    _, out = place.vigil("wait", "s", "--json")
    (warning,) = json.loads(out)["warnings"]

    assert (code, first["verdict"]) == (READY, "ready")
    assert warning.startswith("2 files of sglang differ from the wheel: worker.py is loaded by python (pid ")
    assert warning.endswith("unused.py is loaded by none")


def test_expectations_that_are_met_leave_it_ready_with_the_proof(place: Place) -> None:
    worker = place.site / "sglang/srt/worker.py"
    wanted = (
        "module=sglang.srt.worker",
        f"file={worker}",
        "class=Worker",
        "arg.max_running_requests=48",
        "speculation",
    )
    code, verdict = place.up(*(word for one in wanted for word in ("--expect", one)))

    assert (code, verdict["verdict"]) == (READY, "ready"), [
        verdict[name] for name in ("reason", "expectations", "warnings")
    ]
    assert [one["met"] for one in verdict["expectations"]] == [True] * 5
    assert "on: 3.20 tokens a step" in verdict["expectations"][4]["found"]


def test_expectation_that_fails_is_degraded_with_what_runs_instead(place: Place) -> None:
    code, verdict = place.up("--expect", "class=Unused", "--expect", "arg.max_running_requests=256")

    assert (code, verdict["verdict"], verdict["exit_code"]) == (DEGRADED, "degraded", DEGRADED)
    assert [one["met"] for one in verdict["expectations"]] == [False, False]
    assert "max_running_requests is 48" in verdict["expectations"][1]["found"]


def test_file_that_changed_since_it_was_loaded_is_not_what_runs(place: Place) -> None:
    place.up()
    worker = place.edit("sglang/srt/worker.py")
    code, out = place.vigil("wait", "s", "--json", "--expect", f"file={worker}")
    verdict = json.loads(out)

    assert code == DEGRADED
    assert "before it changed on disk" in verdict["expectations"][0]["found"]
    assert any("worker.py" in one and "changed on disk after" in one for one in verdict["warnings"])


def test_table_marks_what_was_changed_without_a_word_and_hides_the_key(place: Place) -> None:
    place.up(flags=("--max-running-requests", "256", "--api-key", SECRET))
    _, out = place.vigil("show", "s", "--args")
    _, told = place.vigil("show", "s", "--args", "--json")
    rows = {row["flag"]: (row["asked"], row["in_force"], row["state"]) for row in json.loads(told)["arguments"]}

    assert rows["--max-running-requests"] == ("256", "48", "changed")
    assert rows["--port"] == (str(place.port), str(place.port), "same")
    assert "1 of 3 are not in force as asked for (!)" in out
    assert SECRET not in out + told
    assert all(SECRET not in path.read_text(errors="replace") for path in (place.folder / "state").rglob("*.jsonl"))


def test_start_without_the_attester_has_none_and_says_so(place: Place) -> None:
    code, verdict = place.up("--no-attest", "--expect", "module=sglang.srt.worker", "--expect", "arg.port=1")

    assert code == DEGRADED
    assert [one["met"] for one in verdict["expectations"]] == [
        None,
        True,
    ]  # its address tells its arguments all the same
    assert "not given the attester" in verdict["expectations"][0]["found"]
    assert not (place.folder / "state/vigil/attest").exists()


def test_server_of_somebody_else_is_asked_by_its_address(place: Place) -> None:
    server = subprocess.Popen(
        place.command("--max-running-requests", "256"), env={"PATH": os.environ["PATH"]}, start_new_session=True
    )
    try:
        until(lambda: place.vigil("wait", f"http://127.0.0.1:{place.port}")[0] == READY, "a ready server")
        _, out = place.vigil("show", f"http://127.0.0.1:{place.port}", "--args")
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # with its rank and the tracker
        server.wait()

    lines = [line.split() for line in out.splitlines()]
    assert ["!", "--max-running-requests", "256", "48"] in lines
    assert "source: /server_info" in out
    assert "vigil did not start it" in out


def test_through_a_reach_it_is_the_same(place: Place) -> None:
    """Everything is sent as text to a python3 at the other end of the reach, which has nothing of ours installed."""
    code, verdict = place.up(
        "--reach", "env THERE=1", "--expect", "class=Worker", "--expect", "arg.max_running_requests=48"
    )
    _, out = place.vigil("show", "s", "--args", "--reach", "env THERE=1")

    assert (code, verdict["host"]) == (READY, "env THERE=1"), verdict
    assert [one["met"] for one in verdict["expectations"]] == [True, True]
    assert "not told" not in out.split("source:")[0]


def test_two_starts_differ_in_nothing_by_the_attester(place: Place) -> None:
    place.up()
    until(place.snapshot_is_whole, "the snapshot")
    place.vigil("stop", "s", "--grace", "1s")
    place.up("--no-attest")
    until(place.snapshot_is_whole, "the snapshot")
    _, out = place.vigil("diff", "s", "1", "2", "--json")

    assert [
        one["what"] for one in json.loads(out)["changes"] if "PYTHONPATH" in one["what"] or "VIGIL" in one["what"]
    ] == []


def test_rank_that_is_stopped_is_waited_for_a_little_and_named(place: Place) -> None:
    place.up()
    sockets = (place.folder / "state/vigil/servers/s/current/attest").glob("*.sock")
    rank = max(int(one.stem) for one in sockets)
    os.kill(rank, signal.SIGSTOP)
    try:
        code, out = place.vigil("wait", "s", "--json", "--expect", "module=sglang.srt.unused")
    finally:
        os.kill(rank, signal.SIGCONT)
    (judged,) = json.loads(out)["expectations"]

    assert (code, judged["met"]) == (DEGRADED, None)
    assert "it is stopped" in json.loads(out)["warnings"][0]


def of_a_script(place: Place, first: str, *options: str) -> tuple[int, str]:
    """Bring the server up by a script of two lines; return the exit code and what was printed."""
    script = place.folder / "run.sh"
    script.write_text(f"#!/bin/sh\n{first}{' '.join(place.command())}\n")
    script.chmod(0o755)
    place.names.append("s")
    url = f"http://127.0.0.1:{place.port}"
    expect = ("--expect", "arg.max_running_requests=48", "--expect", "module=sglang.srt.worker")
    return place.vigil("up", "--no-check", "--json", "--name", "s", *options, "--url", url, *expect, "--", str(script))


def test_start_script_hides_neither_the_arguments_nor_the_modules_of_its_engine(place: Place) -> None:
    code, out = of_a_script(place, "", "--env", "PYTHONPATH=")

    assert (code, [one["met"] for one in json.loads(out)["expectations"]]) == (READY, [True, True]), out


def test_start_script_that_sets_the_path_anew_is_said_to_have_done_so(place: Place) -> None:
    code, out = of_a_script(place, "export PYTHONPATH=/work\n")
    arguments, module = json.loads(out)["expectations"]

    assert (code, arguments["met"], module["met"]) == (DEGRADED, True, None)
    assert "its PYTHONPATH was set anew" in module["found"]


@pytest.mark.parametrize(("name", "wrong"), [("nope.py", "there is no such file"), (".", "it is no file")])
def test_file_that_cannot_be_loaded_is_refused_before_the_start(place: Place, name: str, wrong: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vigil", "up", "--expect", f"file={name}", "--", "true"],
        env=place.env,
        cwd=place.folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert wrong in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_address_at_which_nothing_answers_is_one_line(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vigil", "show", f"http://127.0.0.1:{place.port}", "--args"],
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "says what it runs" in done.stderr


def test_nonsense_to_expect_is_one_line(place: Place) -> None:
    code, out = place.vigil("up", "--expect", "klass=X", "--", "true")

    assert (code, out) == (2, "")
