"""What a measurement may meet that is bad, each with the real command line: the list of the issue, line by line."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_stream import fake

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from vigil_cli import COMMAND, Vigil

QUICK = ("--seconds", "1", "--repeats", "1", "--input", "16", "--output", "8")
MOST_KIB = 300 << 10
OUR_OWN_REQUESTS = 8  # at most so many are asked before the measuring begins


@pytest.fixture
def vigil(tmp_path: Path) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    yield ours
    ours.close()


def row_of(done: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.out)["rows"][0]
    return found


# A model name that the server does not list.


def test_a_model_that_is_not_listed_is_refused_with_what_is(vigil: Vigil) -> None:
    with fake("--model", "org/real-8b") as server:
        done = vigil("bench", server.url, "--model", "real-8b", *QUICK)
        asked = server.seen()["seen"]

    assert (done.rc, done.out, done.err.count("\n")) == (2, "", 1)
    assert "does not list the model 'real-8b'; it lists org/real-8b" in done.err
    assert asked == 0


def test_a_server_that_lists_a_gigabyte_of_models_is_told_in_a_line(vigil: Vigil) -> None:
    with fake("--fault", "flood-models") as server:
        done = vigil("bench", server.url, *QUICK)

    assert (done.rc, done.out, done.err.count("\n")) == (1, "", 1)
    assert "/v1/models answers with nothing usable: more than 16 MiB" in done.err


# A prompt longer than its context.


@pytest.mark.parametrize(
    ("words", "output", "told"),
    [
        (
            400,
            "8",
            "the longest prompt of --prompts is longer than the server's context: 400: This model's maximum context",
        ),
        (70, "32", "tokens, and 32 out do not fit the context of 100 tokens of m with it"),
    ],
)
def test_a_prompt_of_a_file_that_does_not_fit_is_found_before_anything_is_measured(
    vigil: Vigil, words: int, output: str, told: str
) -> None:
    prompts = vigil.folder / "prompts.txt"
    prompts.write_text(f"short\n{'word ' * words}\nanother\n")
    with fake("--context", "100", "--step", "0.002") as server:
        done = vigil("bench", server.url, "--prompts", str(prompts), "--output", output)
        asked = server.seen()["seen"]

    assert (done.rc, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert asked == 1


def test_no_prompt_of_a_file_is_asked_before_it_is_measured(vigil: Vigil) -> None:
    prompts = vigil.folder / "prompts.txt"
    prompts.write_text("the first of them\nthe second of them, which is longer\n")
    with fake("--step", "0.002", "--log-prompts") as server:
        done = vigil(
            "bench", server.url, "--prompts", str(prompts), "--concurrency", "1", "--requests", "2", "--repeats", "1"
        )
        asked = server.seen()["prompts"]

    assert done.rc == 0
    assert asked[1:] == prompts.read_text().splitlines()
    assert asked[0] not in asked[1:]


# A full disk.


def test_a_disk_that_fills_up_costs_one_line_and_no_finished_row(vigil: Vigil) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount of our own is allowed here")
    with fake("--step", "0.002") as server:
        words = [
            *COMMAND,
            "bench",
            server.url,
            "--concurrency",
            "1,2,3,4,5,6",
            *QUICK,
            "--requests",
            "6",
            "--out",
            "disk/r",
        ]
        script = (
            "mkdir disk && mount -t tmpfs -o size=16k none disk || exit 77\n"
            f"{shlex.join(words)}\necho rc=$? >&2\n"
            f"{shlex.join([*COMMAND, 'report', '--json', 'disk/r'])}"
        )
        done = subprocess.run(
            [unshare, "-m", "bash", "-c", script],
            env=vigil.env,
            cwd=vigil.folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 77:
        pytest.skip("no tmpfs can be mounted here")

    lines = done.stderr.splitlines()
    at = lines.index("rc=1")
    assert lines[at - 1].startswith(
        "vigil: the result could not be written to disk/r/rows.jsonl: No space left on device"
    )
    assert "Traceback" not in done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert 1 <= len(rows) < 6
    assert all(row["ended"] == 6 for row in rows)


def test_figures_are_said_even_where_they_cannot_be_kept(vigil: Vigil) -> None:
    with fake("--step", "0.002") as server:
        words = [*COMMAND, "bench", server.url, "--concurrency", "1", *QUICK, "--requests", "6", "--json", "--out", "r"]
        limited = ["bash", "-c", 'ulimit -f 3; exec "$@"', "x", *words]  # KiB a file: a row fits, the report does not
        done = subprocess.run(limited, env=vigil.env, cwd=vigil.folder, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert json.loads(done.stdout)["rows"][0]["ended"] == 6
    assert "could not be written to r/report.json: File too large" in done.stderr.splitlines()[-1]
    assert list((vigil.folder / "r").glob("*.new")) == []


# Fewer open files than the load wants.


def test_a_load_is_not_held_down_by_the_usual_limit_of_open_files(vigil: Vigil) -> None:
    with fake("--step", "0.005") as server:
        words = [*COMMAND, "bench", server.url, "--concurrency", "120", *QUICK, "--requests", "240", "--json"]
        limited = ["bash", "-c", 'ulimit -Sn 64; exec "$@"', "x", *words]
        done = subprocess.run(limited, env=vigil.env, cwd=vigil.folder, capture_output=True, text=True, check=False)
        most = server.seen()["most_running"]

    row = json.loads(done.stdout)["rows"][0]
    assert (row["ended"], row["failures"]) == (240, {})
    assert most > 64


# 429s and 503s: counted, backed off, never retried into a stampede.


@pytest.mark.parametrize(("fault", "status"), [("throttle", 429), ("unavailable", 503)])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_refusals_are_counted_and_backed_off_from(vigil: Vigil, fault: str, status: int, processes: str) -> None:
    flags = ("--step", "0.002", "--fault", fault, "--fault-always", "--fault-after", "12")
    with fake(*flags) as server:
        loads = ("--concurrency", "16", *QUICK, "--most", "3s", "--processes", processes)
        done = vigil("bench", server.url, *loads, "--json")
        at = server.seen()["at"]

    row = row_of(done)
    refused = row["failures"]["throttled"]
    assert row["sent"] <= len(at) <= row["sent"] + OUR_OWN_REQUESTS  # each was counted, and none sent on the quiet
    assert f"{status}: " in row["failure_text"]
    assert refused >= 16  # every worker met one
    # Sixteen workers that wait 0.25 s, then 0.5 s, ... each time at random from the half of it on, ask about five times in 3 s.
    assert len(at) < 16 * 8
    late = [one for one in at if one > at[12] + 0.6]  # past the first waits
    crowds = [sum(1 for other in late if one <= other < one + 0.02) for one in late]
    assert max(crowds, default=0) <= 8  # they do not come back together


def test_arrivals_at_a_rate_are_not_sent_again(vigil: Vigil) -> None:
    with fake("--step", "0.002", "--fault", "unavailable", "--fault-after", "10") as server:
        done = vigil("bench", server.url, "--rate", "40", *QUICK, "--requests", "60", "--json")
        seen = server.seen()["seen"]

    row = row_of(done)
    assert row["sent"] == 60
    assert row["failures"]["throttled"] >= 50
    assert seen <= 60 + OUR_OWN_REQUESTS


def test_a_server_that_is_full_from_the_start_is_told_in_a_line(vigil: Vigil) -> None:
    with fake("--fault", "unavailable") as server:
        done = vigil("bench", server.url, *QUICK)
        seen = server.seen()["seen"]

    assert (done.rc, done.out, done.err.count("\n")) == (1, "", 1)
    assert "nothing usable (throttled): 503: no slot available" in done.err
    assert seen == 1


# A server that streams nothing.


@pytest.mark.parametrize(("fault", "kind"), [("hang", "silent"), ("hang-midway", "silent"), ("empty", "empty")])
def test_answers_without_a_token_are_counted_and_do_not_hold_it_up(vigil: Vigil, fault: str, kind: str) -> None:
    with fake("--step", "0.002", "--fault", fault, "--fault-after", "6") as server:
        loads = ("--concurrency", "2", *QUICK, "--most", "3s", "--patience", "0.5s")
        done = vigil("bench", server.url, *loads, "--json")

    row = row_of(done)
    assert row["failures"][kind] >= 2
    assert row["lasted_s"] < 10


# A reply of 1 GB.


@pytest.mark.parametrize("fault", ["flood", "flood-line", "flood-plain"])
def test_replies_of_a_gigabyte_are_counted_and_nothing_of_them_is_kept(vigil: Vigil, fault: str) -> None:
    with fake("--step", "0.002", "--fault", fault, "--fault-after", "6") as server:
        words = [*COMMAND, "bench", server.url, "--concurrency", "2", *QUICK, "--most", "3s", "--json"]
        process = subprocess.Popen(
            words, env=vigil.env, cwd=vigil.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        with process.stdout:
            out = process.stdout.read()
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0

    assert json.loads(out)["rows"][0]["failures"]["flooded"] >= 1
    assert usage.ru_maxrss < MOST_KIB
