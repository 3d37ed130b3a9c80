"""`vigil tune` with the real command line, against the streaming fake as a vLLM whose crossing is known beforehand."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "cli"), str(TESTS / "bench")]

from fake_stream import FAKE  # noqa: E402 - found by the path above
from vigil_cli import COMMAND, Result, Vigil, result, until  # noqa: E402 - likewise

QUICK = ("--engine", "vllm", "--seconds", "1", "--repeats", "1", "--input", "32", "--output", "16", "--no-check")
TWO = ("--concurrency", "2,8", "--out", "r", "--")


@pytest.fixture
def vigil(tmp_path: Path) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    yield ours
    ours.close()


def server(port: int, *flags: str, k: int = 1) -> list[str]:
    """A server that makes n * (1 + k) tokens in 20 ms and 5 ms more for each draft token: k 1 is level at 4 at once."""
    config = json.dumps({"method": "eagle3", "model": "/d", "num_speculative_tokens": k})
    pace = ("--step", "0.02", "--draft-each", "0.005")
    return [sys.executable, str(FAKE), "--port", str(port), *pace, "--speculative-config", config, *flags]


def tune(vigil: Vigil, *words: str) -> Result:
    """Run it to its end: a whole tuning is a dozen measurements and six starts."""
    done = subprocess.run(
        [*COMMAND, "tune", *QUICK, *words], env=vigil.env, cwd=vigil.folder, stdin=subprocess.DEVNULL, capture_output=True,
        check=False, timeout=300,
    )  # fmt: skip
    return result(done.returncode, done.stdout, done.stderr)


def kept(folder: Path) -> list[dict[str, Any]]:
    path = folder / "rows.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def schedules(vigil: Vigil) -> list[Path]:
    """Return what `--speculate auto` could find."""
    return list((vigil.state / "vigil" / "schedules").glob("*.json"))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_tune_proves_the_schedule_of_the_crossing_and_auto_finds_it_at_any_port(vigil: Vigil) -> None:
    done = tune(vigil, *TWO, *server(vigil.port))

    assert done.rc == 0, done.err + done.out
    held = json.loads((vigil.folder / "r" / "schedule.json").read_text())
    assert held["tiers"] == [{"k": 1}, {"k": 0, "above": 3, "below": 3}]
    assert held["measured_on"]["steps"]["0"]["8"]["accept_length"] == 1.0
    told = re.search(
        r"^proven: off above 3, back on below 3: (\S+)x at 2, (\S+)x at 8, against (\S+)x for", done.out, re.MULTILINE
    )
    assert told is not None, done.out
    assert [float(one) for one in told.groups()] == pytest.approx([4 / 3, 1.0, 2 / 3], rel=0.15)
    assert "; 2 switches on a ramp to 8 and back" in done.out
    assert [json.loads(one.read_text()) for one in schedules(vigil)] == [held]
    up = vigil("up", "--json", "--no-check", "--engine", "vllm", "--speculate", "auto", "--", *server(vigil.port + 1))
    assert up.rc != 2, up.err  # as it is where no schedule is found


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_tune_that_was_killed_goes_on_and_a_server_that_never_switches_is_not_proven(vigil: Vigil) -> None:
    first = vigil.start("tune", *QUICK, *TWO, *server(vigil.port, "--stuck"))
    until(lambda: kept(vigil.folder / "r" / "arms"), "a row")
    first.signal(signal.SIGKILL)
    first.process.wait()
    before = kept(vigil.folder / "r" / "arms")
    done = tune(vigil, *TWO, *server(vigil.port, "--stuck"))

    assert f"{len(before)} rows of r/arms are kept" in done.err
    assert kept(vigil.folder / "r" / "arms")[: len(before)] == before
    assert done.rc == 13, done.err + done.out
    assert "NOT proven" in done.out
    assert "at 8 at once on the way up k 1 was in force, not 0" in done.out
    assert schedules(vigil) == []


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_tune_goes_on_without_an_arm_that_dies_and_names_its_cause(vigil: Vigil) -> None:
    done = tune(vigil, "--k", "2", *TWO, *server(vigil.port, "--die-at-k", "2"))

    assert done.rc == 4, done.err + done.out
    assert "CUDA out of memory" in done.out, done.out
    held = json.loads((vigil.folder / "r" / "schedule.json").read_text())
    assert held["k"] == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--k", "0", "--", "vllm", "serve", "m"), "--k '0': give draft tokens a step"),
        (("--k", "x", "--", "vllm", "serve", "m"), "--k 'x': give draft tokens a step"),
        (("--", "vllm", "serve", "m"), "asks for no speculation that is known here"),
        (("--k", "2", "--", "llama-server", "-m", "m", "-md", "d"), "llama-server cannot switch speculation"),
        (("--concurrency", "0", "--", "vllm", "serve", "m"), "give a number above 0"),
        ((), "no command was given"),
    ],
)
def test_tune_refuses_in_one_line(vigil: Vigil, words: tuple[str, ...], why: str) -> None:
    done = vigil("tune", *words)
    assert (done.rc, len(done.err.splitlines())) == (2, 1), done.err
    assert why in done.err


def test_up_warns_in_one_line_of_a_schedule_that_was_measured_on_another_draft(vigil: Vigil) -> None:
    tiers = [{"k": 1}, {"k": 0, "above": 3, "below": 3}]
    on = {"engine": "vllm", "gpu": ["H200"], "draft": {"given": "/e", "commit": None, "weights": ""}}
    path = vigil.folder / "s.json"
    path.write_text(json.dumps({"schema": 1, "engine": "vllm", "k": 1, "tiers": tiers, "measured_on": on}))
    up = vigil("up", "--json", "--no-check", "--engine", "vllm", "--speculate", str(path), "--", *server(vigil.port))

    assert [one for one in up.verdict["warnings"] if "schedule" in one] == [
        "the schedule was measured on something else: draft /d (measured on /e); vigil tune measures one for this"
    ], up.out + up.err
