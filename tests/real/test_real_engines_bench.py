"""vLLM and SGLang on the CPU, measured through the real `vigil`: their shapes, their counts, their metrics."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES, Site

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]
LENGTHS = ("--input", "48", "--output", "16", "--repeats", "1", "--requests", "4", "--concurrency", "1,2")
VLLM = ("--enforce-eager", "--dtype", "bfloat16", "--max-model-len", "1024", "--max-num-seqs", "4")
NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3, "prompt_lookup_min": 2}
SGLANG = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--disable-overlap-schedule", "--host", "127.0.0.1"),
    *("--mem-fraction-static", "0.3", "--context-length", "1024", "--max-running-requests", "4", "--enable-metrics"),
)


def checked(found: dict[str, Any], engine: str) -> None:
    """Assert that every row is whole, and counted as it was asked for."""
    assert len(found["rows"]) == 2 * len(found["meta"]["arms"])
    for row in found["rows"]:
        assert row["cause"] is None, row
        assert (row["ended"], row["failures"], row["output_tokens"]) == (4, {}, 16.0)
        assert abs(row["input_tokens"] - 48) <= 3
        assert row["tpot_s"]["p50"] > 0
    for server in found["servers"].values():
        assert (server["target"]["engine"], server["target"]["context"], server["target"]["ignore_eos"]) == (
            engine,
            1024,
            True,
        )
        assert server["settings"]["version"]


def test_vllm_with_and_without_ngram_is_compared(site: Site, hf_model: Path) -> None:
    if not (ENGINES / "vllm" / ".installed").is_file():
        pytest.skip("no vLLM here: tests/real/install-vllm.sh installs it")
    off = [str(ENGINES / "vllm" / "bin" / "vllm"), "serve", str(hf_model), *VLLM, "--port", str(site.port)]
    ngram = [*off, "--speculative-config", json.dumps(NGRAM)]
    arms = ("--arm", f"off={shlex.join(off)}", "--arm", f"ngram={shlex.join(ngram)}")
    env = ("--env", "VLLM_CPU_KVCACHE_SPACE=1", "--env", "HF_HUB_OFFLINE=1", "--env", "PYTHONPATH=")
    done = site("compare", *arms, *env, *LENGTHS, "--out", str(site.folder / "results"), "--json")

    assert done.rc == 0, done.err
    found = json.loads(done.out)
    checked(found, "vllm")
    drafts = {row["arm"]: row["told"]["drafts"] for row in found["rows"]}
    assert drafts["off"] in {None, 0.0}
    assert found["answers"][0]["arm"] == "ngram"


def test_sglang_is_measured_by_its_name(site: Site, hf_model: Path) -> None:
    if not (ENGINES / "sglang" / ".installed").is_file():
        pytest.skip("no SGLang here: tests/real/install-sglang.sh installs it")
    start = [str(ENGINES / "sglang" / "bin" / "python"), "-m", "sglang.launch_server", "--model-path", str(hf_model)]
    env = ("--env", "HF_HUB_OFFLINE=1", "--env", "PYTHONPATH=")
    up = site("up", "--json", "--name", "s", *env, "--", *start, *SGLANG, "--port", str(site.port))
    done = site("bench", "s", *LENGTHS, "--out", str(site.folder / "results"), "--json")
    site("stop", "s", "--grace", "20s")

    assert (up.rc, done.rc) == (0, 0), up.err + done.err
    found = json.loads(done.out)
    checked(found, "sglang")
    assert found["servers"]["s"]["settings"]["max_running_requests"] == 4
    assert "api_key" not in json.dumps(found["servers"])
