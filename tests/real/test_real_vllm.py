"""The real vLLM, on the CPU, through the real `vigil`: a start, and deaths of which only one has an exit code that says so."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from real_runs import ENGINES, ROOT, Site, assert_phases_sane, below, cut_short, pid_of, until, worker

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
ENV = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1"}
HOME = ENGINES / "vllm"
FLAGS = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "4")


@pytest.fixture
def server(site: Site, hf_model: Path) -> Callable[..., list[str]]:
    """Make a command line of vLLM on the test's port."""
    if not (HOME / ".installed").is_file():
        pytest.skip("no vLLM here: tests/real/install-vllm.sh installs it")

    def command(*flags: str, model: Path = hf_model) -> list[str]:
        return [str(HOME / "bin" / "vllm"), "serve", str(model), *FLAGS, "--port", str(site.port), *flags]

    return command


def draft(folder: Path, hidden: int) -> list[str]:
    """Make a random EAGLE-3 draft and return the flags that ask for it."""
    script = ROOT / "tests" / "real" / "make_draft.py"
    subprocess.run([HOME / "bin" / "python", script, folder, "--hidden-size", str(hidden)], check=True, timeout=300)
    wanted = {"method": "eagle3", "model": str(folder), "num_speculative_tokens": 3}
    return ["--speculative-config", json.dumps(wanted)]


def test_vllm_is_ready_and_its_dead_engine_is_a_crash_though_it_exits_with_0(
    site: Site, server: Callable[..., list[str]]
) -> None:
    following = site.watch("vllm-engine-killed", *server(), options=("--follow",), env=ENV)
    ready = following.until("ready")
    pid = pid_of(ready)
    until(lambda: json.loads(site("ps", "--json").out)[0]["verdict"] == "ready", "ready in the list", 60.0)
    tree = list(below(pid))
    os.kill(worker(pid, "VLLM::EngineCore"), signal.SIGKILL)
    done = following.end()
    site.keep("vllm-engine-killed", done)
    facts = [json.loads(line) for line in site.trace("vllm-engine-killed").read_text().splitlines()]
    workers = {fact["name"] for fact in facts if fact.get("kind") == "ChildStarted" and fact.get("worker")}

    assert (ready["ready_level"], ready["owner"], ready["engine"]) == ("token", "verified", "vllm")
    assert_phases_sane(ready)
    names = [one["name"] for one in ready["phases"]]
    assert names[0] == "importing"
    assert {"loading_weights", "allocating_kv"} <= set(names)
    assert any("EngineCore" in name for name in workers), workers
    assert (done.rc, done.words) == (4, ["ready", "crashed"])
    assert done.verdict["attempts"][-1]["exit"] == 0
    assert "nobody asked it to end" in done.verdict["reason"]
    until(lambda: not any(Path(f"/proc/{child}").exists() for child, _ in tree), "the end of its tree", 30.0)


def test_vllm_unknown_flag_is_a_crash(site: Site, server: Callable[..., list[str]]) -> None:
    done = site.up("vllm-unknown-flag", *server("--num-speculative-tokens", "16"), options=("--no-check",), env=ENV)

    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FLAG001")
    assert done.verdict["attempts"][-1]["exit"] == 2
    assert "--num-speculative-tokens" in site.log().splitlines()[done.verdict["cause"]["line"] - 1]


def test_vllm_truncated_weights_are_a_crash_with_the_first_error_as_cause(
    site: Site, server: Callable[..., list[str]], hf_model: Path, tmp_path: Path
) -> None:
    half = cut_short(hf_model, tmp_path / "half", "model.safetensors")
    foretold = site("check", "--", *server(model=half))
    done = site.up("vllm-truncated", *server(model=half), options=("--no-check",), env=ENV)

    assert (foretold.rc, "FILE002" in foretold.out) == (3, True)
    assert (done.rc, done.words, done.code) == (4, ["crashed"], "FILE002")
    assert "SafetensorError" in done.verdict["cause"]["text"]
    assert site.processes() == []


def test_vllm_draft_of_another_width_is_never_ready(
    site: Site, server: Callable[..., list[str]], tmp_path: Path
) -> None:
    """It starts, answers 200, and dies at the first request that drafts, with exit code 0."""
    flags = draft(tmp_path / "draft", 512)
    foretold = site("check", "--", *server(*flags))
    done = site.up("vllm-wrong-draft", *server(*flags), options=("--no-check",), env=ENV)

    assert (foretold.rc, "DRAFT001" in foretold.out) == (3, True), foretold.out
    assert (done.rc, done.words) == (4, ["crashed"])
    assert done.verdict["attempts"][-1]["ready_s"] is None
    assert "(Worker" in done.verdict["cause"]["text"]
    assert "1536" in done.verdict["cause"]["text"]  # 3 x 512, where 3 x 576 came


def test_vllm_with_a_draft_that_fits_is_ready(site: Site, server: Callable[..., list[str]], tmp_path: Path) -> None:
    done = site.up("vllm-draft", *server(*draft(tmp_path / "draft", 576)), env=ENV)
    stopped = site("stop", "s")

    assert (done.rc, done.words, done.verdict["ready_level"]) == (0, ["ready"], "token")
    assert "loading_draft" in {one["name"] for one in done.verdict["phases"]}
    assert stopped.rc == 0
    assert stopped.out.startswith("s stopped (exit code 0")  # a tracker of shared memory may be left, and is ended too
    assert site.processes() == []
