"""The real SGLang, on the CPU, through the real `vigil`: the first of the stories, and what it does when a part of it dies."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from real_runs import ENGINES, Site, assert_phases_sane, cut_short, pid_of, worker

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
ENV = {"HF_HUB_OFFLINE": "1"}
HOME = ENGINES / "sglang"
FLAGS = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--disable-overlap-schedule", "--host", "127.0.0.1"),
    *("--mem-fraction-static", "0.3", "--context-length", "1024", "--max-running-requests", "4"),
)


@pytest.fixture
def server(site: Site, hf_model: Path) -> Callable[..., list[str]]:
    """Make a command line of SGLang on the test's port."""
    if not (HOME / ".installed").is_file():
        pytest.skip("no SGLang here: tests/real/install-sglang.sh installs it")

    def command(*flags: str, model: Path = hf_model) -> list[str]:
        start = [str(HOME / "bin" / "python"), "-m", "sglang.launch_server", "--model-path", str(model)]
        return [*start, *FLAGS, "--port", str(site.port), *flags]

    return command


def test_sglang_is_ready_and_the_death_of_its_scheduler_is_told(site: Site, server: Callable[..., list[str]]) -> None:
    following = site.watch("sglang-scheduler-killed", *server(), options=("--follow",), env=ENV)
    ready = following.until("ready")
    pid = pid_of(ready)
    os.kill(worker(pid, "sglang::scheduler"), signal.SIGKILL)
    done = following.end()
    site.keep("sglang-scheduler-killed", done)
    facts = [json.loads(line) for line in site.trace("sglang-scheduler-killed").read_text().splitlines()]
    workers = {fact["name"] for fact in facts if fact.get("kind") == "ChildStarted" and fact.get("worker")}
    site("stop", "s", "--grace", "20s")

    assert (ready["ready_level"], ready["owner"], ready["engine"]) == ("token", "verified", "sglang")
    assert_phases_sane(ready)
    assert {"importing", "loading_weights", "allocating_kv"} <= {one["name"] for one in ready["phases"]}
    assert {name.partition("_")[0] for name in workers} >= {"sglang::scheduler", "sglang::detokenizer"}, workers
    # Its launcher outlives the scheduler by some seconds: whichever comes first is told.
    assert done.words[0] == "ready"
    assert done.words[-1] in {"unhealthy", "crashed"}
    if done.words[-1] == "unhealthy":
        assert "sglang::scheduler" in done.verdict["reason"]
    assert site.processes() == []


def test_sglang_flag_of_the_first_story_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    refused = site.watch("sglang-refused", *server("--num-speculative-tokens", "16"), env=ENV).end()
    done = site.up("sglang-unknown-flag", *server("--num-speculative-tokens", "16"), options=("--no-check",), env=ENV)

    assert (refused.rc, refused.words) == (3, ["refused"])

    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FLAG001")
    assert done.verdict["attempts"][-1]["exit"] == 2
    assert "--num-speculative-tokens" in site.log().splitlines()[done.verdict["cause"]["line"] - 1]


def test_sglang_truncated_weights_are_a_crash(
    site: Site, server: Callable[..., list[str]], hf_model: Path, tmp_path: Path
) -> None:
    """It kills its own tree with signal 9, which is not the kernel's OOM killer."""
    half = cut_short(hf_model, tmp_path / "half", "model.safetensors")
    foretold = site("check", "--", *server(model=half))
    done = site.up("sglang-truncated", *server(model=half), options=("--no-check",), env=ENV)

    assert (foretold.rc, "FILE002" in foretold.out) == (3, True)
    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FILE002")
    assert "OOM" not in done.verdict["reason"]
    assert site.processes() == []
