"""`vigil tune` with the real command line, against the streaming fake as a vLLM whose crossing is known beforehand."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "cli"), str(TESTS / "bench")]

from fake_stream import FAKE
from vigil_cli import Vigil

QUICK = ("--engine", "vllm", "--seconds", "1", "--repeats", "2", "--input", "32", "--output", "16", "--no-check")


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


@pytest.mark.slow
def test_tune_writes_the_schedule_of_the_crossing_where_auto_finds_it(vigil: Vigil) -> None:
    done = vigil("tune", *QUICK, "--concurrency", "2,8", "--out", "r", "--", *server(vigil.port))

    assert done.rc == 0, done.err + done.out
    held = json.loads((vigil.folder / "r" / "schedule.json").read_text())
    assert held["tiers"] == [{"k": 1}, {"k": 0, "above": 3, "below": 3}]
