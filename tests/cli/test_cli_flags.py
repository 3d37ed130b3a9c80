"""`vigil flags diff` and `vigil check` on flags, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def vigil(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vigil", *words],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_STATE_HOME": str(state), "PATH": "/usr/bin:/bin", "HOME": str(state)},
        timeout=60,
    )


def test_the_first_storys_command_is_refused_with_the_right_flag(tmp_path: Path) -> None:
    done = vigil(
        "check", "--", "python", "-m", "sglang.launch_server", "--model-path", "m", "--num-speculative-tokens", "16",
        state=tmp_path,
    )  # fmt: skip

    assert done.returncode == 3
    assert "python -m sglang.launch_server --model-path m --speculative-num-draft-tokens 16" in done.stdout


def test_a_release_can_be_chosen(tmp_path: Path) -> None:
    words = ("--", "sglang", "serve", "m", "--cuda-graph-max-bs", "64")

    old = vigil("check", "--json", "--engine-version", "v0.5.10", *words, state=tmp_path)
    new = vigil("check", "--json", "--engine-version", "0.5.23", *words, state=tmp_path)

    assert (old.returncode, new.returncode) == (0, 3)
    assert json.loads(old.stdout)["version"] == "0.5.10 (table)"
    assert json.loads(new.stdout)["corrected"] == ["sglang", "serve", "m", "--cuda-graph-max-bs-decode", "64"]


def test_a_release_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    done = vigil("check", "--engine-version", "newest", "--", "sglang", "serve", "m", state=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "is no release" in done.stderr


def test_a_drift_shows_what_came_went_and_changed(tmp_path: Path) -> None:
    done = vigil("flags", "diff", "0.5.10", "0.5.23", state=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("sglang: from 0.5.10 to 0.5.23\n")
    assert "  --cuda-graph-max-bs  (in its place: --cuda-graph-max-bs-decode)" in done.stdout
    assert "  --speculative-adaptive\n" in done.stdout
    assert "    on its way out: --attn-dp-size <dp-size>" in done.stdout


def test_a_drift_as_json_and_of_a_release_that_the_table_lacks(tmp_path: Path) -> None:
    done = vigil("flags", "diff", "0.17.1", "0.33.0", "--engine", "vllm", "--json", state=tmp_path)
    told = vigil("flags", "diff", "0.17.1", "0.33.0", "--engine", "vllm", state=tmp_path)

    found = json.loads(done.stdout)
    assert (found["engine"], found["old"], found["new"]) == ("vllm", "0.16.0", "0.33.0")
    assert "the table has no 0.17.1; 0.16.0 is the nearest before it" in told.stdout


@pytest.mark.parametrize(
    "words", [("0.5.10", "new"), ("1", "2", "--engine", "tgi"), ("1", "2", "--engine", "../flags")]
)
def test_a_drift_of_what_is_no_release_or_no_engine_is_one_clear_line(words: tuple[str, ...], tmp_path: Path) -> None:
    done = vigil("flags", "diff", *words, state=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_key_is_shown_nowhere(tmp_path: Path) -> None:
    key = "sk-SECRETSECRET123456"
    words = ("--", "sglang", "serve", "m", "--api_key", key, "--port", key)

    said = vigil("check", *words, state=tmp_path)
    told = vigil("check", "--json", *words, state=tmp_path)

    assert "--api-key" in said.stdout
    assert json.loads(told.stdout)["corrected"][3] == "--api-key"
    assert key not in said.stdout + said.stderr + told.stdout + told.stderr


def test_up_refuses_and_starts_nothing_unless_told_to(tmp_path: Path) -> None:
    words = ("--", sys.executable, "-m", "sglang.launch_server", "--model-path", "m", "--num-speculative-tokens", "16")

    refused = vigil("up", "--json", "--name", "s", *words, state=tmp_path)
    known = (tmp_path / "vigil/servers/s").exists()
    started = vigil("up", "--json", "--name", "s", "--no-check", *words, state=tmp_path)

    assert refused.returncode == 3
    assert json.loads(refused.stdout.splitlines()[-1])["verdict"] == "refused"
    assert not known
    assert started.returncode == 4
