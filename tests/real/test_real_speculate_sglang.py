"""vigil-engine in the real adaptive controller of the installed SGLang: found as a plugin, what it decides, its account."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES

from vigil.attest.plugin import plugin_texts

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600), pytest.mark.xdist_group("heavy")]
PYTHON = ENGINES / "sglang" / "bin" / "python"
SCRIPT = Path(__file__).parent / "sglang_controller.py"
SCHEDULE = {
    "schema": 1, "engine": "sglang", "k": 3, "tiers": [{"k": 3}, {"k": 0, "above": 4, "below": 3}],
    "dwell_steps": 8, "rest_steps": 50, "most_rest_steps": 200, "calm_steps": 1000, "measured_on": None,
}  # fmt: skip
OWN = {"1": {"candidate_steps": [3]}, "5": {"candidate_steps": [0]}}
LOADS = [1] * 20 + [6] * 100 + [2] * 100


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The plugin as it travels beside a start, and SGLang's own file of steps."""
    if not (ENGINES / "sglang" / ".installed").is_file():
        pytest.skip("no SGLang here: tests/real/install-sglang.sh installs it")
    for name, text in plugin_texts().items():
        path = tmp_path / "plugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "accounts").mkdir()
    (tmp_path / "adaptive.json").write_text(json.dumps(OWN))
    return tmp_path


def told(home: Path, schedule: dict[str, Any], **more: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what the controller did, and the accounts that were written."""
    env = {
        "PYTHONPATH": str(home / "plugin"),
        "VIGIL_ENGINE_DIR": str(home / "accounts"),
        "VIGIL_ENGINE_SCHEDULE": json.dumps(schedule),
    }
    command = [str(PYTHON), "-W", "ignore", str(SCRIPT), str(home / "adaptive.json"), json.dumps(LOADS)]
    done = subprocess.run(command, env={**os.environ, **env, **more}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    accounts = [json.loads(path.read_text()) for path in (home / "accounts").glob("*.json")]
    return json.loads(done.stdout.strip().rpartition("\n")[2]), accounts


def test_real_controller_takes_its_steps_from_vigil_engine(home: Path) -> None:
    found, (account,) = told(home, SCHEDULE)

    assert found["policy"] == "vigil_engine.sglang"
    assert found["built"] == [[0, 1, [1, 2, 4, 8]]]  # for any load: a mode may hold a k at each
    assert found["runs"] == [
        [3, 27],
        [0, 100],
        [3, 93],
    ]  # 20 and a dwell of 8, the eighth of which decides; the same back
    assert (account["deciding"], account["refused"], account["rank"], account["switches"]) == (True, [], "TP0", 2)
    assert account["acceptance"]["total"]["length"] == 3.0


def test_schedule_that_the_command_does_not_fit_is_refused_and_leaves_sglangs_own_policy(home: Path) -> None:
    schedule = {**SCHEDULE, "k": 2, "tiers": [{"k": 2}, {"k": 0, "above": 4, "below": 3}]}
    found, (account,) = told(home, schedule)

    assert found["policy"] == "sglang.srt.speculative.adaptive_spec_params"
    assert found["runs"] == [[3, 20], [0, 100], [3, 100]]  # a bare threshold
    assert account["refused"] == ["--speculative-num-steps is 3; the schedule begins with k 2"]


def test_plugin_that_sglang_was_told_to_leave_out_says_nothing(home: Path) -> None:
    found, accounts = told(home, SCHEDULE, SGLANG_PLUGINS="another")

    assert (found["policy"], accounts) == ("sglang.srt.speculative.adaptive_spec_params", [])
