"""`vigil tune` with the real command line, against the streaming fake as a vLLM whose crossing is known beforehand."""

import json
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


@pytest.mark.long
@pytest.mark.timeout(400)
def test_tune_writes_the_schedule_of_the_crossing_and_keeps_it_for_auto_where_it_is_proven(vigil: Vigil) -> None:
    done = tune(vigil, *TWO, *server(vigil.port))

    held = json.loads((vigil.folder / "r" / "schedule.json").read_text())
    above = held["tiers"][1]["above"]
    assert [one["k"] for one in held["tiers"]] == [1, 0]
    assert 2 <= above < 8  # k 1 is faster at 2 and slower at 8
    assert held["measured_on"]["steps"]["0"]["8"]["accept_length"] == 1.0
    # How fast this machine was decides whether it is proven; what follows from it is the same everywhere.
    proven = f"proven: off above {above}, back on below " in done.out
    assert done.rc == (0 if proven and "NOT proven" not in done.out else 13), done.err + done.out
    found = [json.loads(one.read_text()) for one in schedules(vigil)]
    assert found == ([held] if done.rc == 0 else []), done.out
    (ramp,) = (vigil.folder / "r").glob("proof-*/ramp.json")
    held_at = [(one["load"], one["k"]) for one in json.loads(ramp.read_text())]
    assert (held_at[0], max(held_at), held_at[-1]) == ((2, 1), (8, 0), (2, 1)), held_at


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.timeout(400)
def test_tune_goes_on_without_an_arm_that_dies_and_names_its_cause(vigil: Vigil) -> None:
    done = tune(vigil, "--k", "2", *TWO, *server(vigil.port, "--die-at-k", "2"))

    assert done.rc in {4, 13}, done.err + done.out  # 13: this machine was too slow to prove it
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
