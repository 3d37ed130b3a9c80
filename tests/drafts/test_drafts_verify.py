"""`vigil draft verify`: what is live is held to what was promised; judged on numbers, and through servers that are started."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_target import make_model

from vigil_draft.verify.judging import Length, Part, judge, length_of, promised_in

FAKE = Path(__file__).with_name("fake_target.py")


def live(value: float, count: int = 40) -> Length:
    found = length_of([Part(tokens=value * 10, steps=10) for _ in range(count)])
    assert found is not None
    return found


def test_length_is_of_all_steps_and_has_an_interval_around_it() -> None:
    found = length_of([Part(tokens=30, steps=10), *[Part(tokens=15, steps=10)] * 9])
    assert found is not None
    assert found.value == pytest.approx(1.65)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.65 < found.high
    assert length_of([]) is None


@pytest.mark.parametrize(
    ("value", "promise", "word"),
    [
        (2.0, Length(value=2.05), "ok"),
        (2.5, Length(value=2.05), "ok"),
        (1.8, Length(value=2.05), "worse than promised"),
        (1.8, Length(value=2.05, low=1.75, high=2.3), "ok"),
        (1.8, None, "measured"),
        (1.01, Length(value=2.05), "broken"),
        (1.01, None, "broken"),
    ],
)
def test_a_live_length_is_judged_beside_its_promise(value: float, promise: Length | None, word: str) -> None:
    assert judge(live(value), promise, ()).word == word


def test_a_bad_word_has_a_reason_always() -> None:
    assert judge(live(1.0), None, ["EAGLE301: no head"]).reasons == ("EAGLE301: no head",)
    assert "another target" in judge(live(1.0), None, ()).reasons[0]
    assert judge(live(1.5), Length(value=2.0), ()).reasons
    assert judge(None, None, ()).text == "no step verified a draft: speculation is off, or not told"


def test_a_promise_is_read_from_an_estimate_for_its_steps() -> None:
    held = {"acceptance_length": {"3": {"served": {"with_bonus": 2.1, "low": 2.0, "high": 2.2}}}}
    assert promised_in(held, 3) == Length(value=2.1, low=2.0, high=2.2)
    assert promised_in(held, 4) is None
    assert promised_in([], 3) is None


def verify(folder: Path, engine: str, accept: float, *more: str) -> "subprocess.CompletedProcess[str]":
    model = make_model(folder / "model")
    draft = folder / "draft"
    draft.mkdir()
    (draft / "config.json").write_text("{}")
    (draft / "vigil.json").write_text('{"data": {"asked": {"temperature": 0.7, "target": {"template_sha256": "0"}}}}')
    words = [
        sys.executable, "-m", "vigil", "draft", "verify", str(draft), "--target", str(model), "--engine", engine, "--no-check",
        "--json", "--program", f"{sys.executable} {FAKE}", *more, "--", "--plays", engine, "--accept", str(accept),
    ]  # fmt: skip
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, env=env)


def told(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_draft_that_keeps_its_promise_is_ok(tmp_path: Path, engine: str) -> None:
    done = verify(tmp_path, engine, 2.0, "--promised", "2.0")
    found = told(done)
    assert (done.returncode, found["word"], found["answers"]) == (0, "ok", 40), done.stderr
    assert found["live"]["value"] == pytest.approx(2.0, abs=0.05)
    assert found["live"]["low"] <= found["live"]["value"] <= found["live"]["high"]


def test_a_draft_that_gives_less_is_told_with_what_differs(tmp_path: Path) -> None:
    estimate = tmp_path / "estimate.json"
    estimate.write_text('{"acceptance_length": {"3": {"served": {"with_bonus": 3.0, "low": 2.9, "high": 3.1}}}}')
    done = verify(tmp_path, "sglang", 1.5, "--promised", str(estimate))
    found = told(done)
    assert (done.returncode, found["word"]) == (9, "worse than promised"), done.stderr
    assert any("another chat template" in one for one in found["reasons"])
    assert any("answered at temperature 0.7" in one for one in found["reasons"])


def test_a_draft_of_which_nothing_is_accepted_is_broken(tmp_path: Path) -> None:
    done = verify(tmp_path, "vllm", 1.0, "--promised", "2.0")
    found = told(done)
    assert (done.returncode, found["word"]) == (13, "broken"), done.stderr
    assert found["reasons"]


def test_verify_refuses_what_cannot_be_promised(tmp_path: Path) -> None:
    done = verify(tmp_path, "vllm", 2.0, "--promised", "9")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "between 1 and 4" in done.stderr
