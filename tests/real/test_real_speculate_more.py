"""What must be told of a vLLM whose speculation is not switched, or not worth it; and that its answers stay what they were."""

import json
import shutil
import struct
import sys
from pathlib import Path

import pytest
from real_runs import ROOT, Site
from test_real_speculate import ENV, answer, prompts, quick, server, spec

from vigil_draft_smollm2 import DRAFT

sys.path.insert(0, str(ROOT / "bench"))
from same_answers import TIE_NATS, answers, judged

__all__ = ["prompts", "quick", "server"]
pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200), pytest.mark.xdist_group("heavy")]


def test_contract_that_fails_is_degraded_and_leaves_the_engine_as_it_was(
    site: Site, server: list[str], tmp_path: Path
) -> None:
    """The plugin that travels is a copy which relies on a name that no vLLM has."""
    copy, ours = tmp_path / "copy", ROOT / "packages" / "vigil-engine" / "src" / "vigil_engine"
    shutil.copytree(ours, copy / "vigil_engine", ignore=shutil.ignore_patterns("__pycache__"))
    contract = copy / "vigil_engine" / "contract.py"
    contract.write_text(contract.read_text().replace('"num_draft_tokens"', '"num_draft_tokens_of_2027"'))
    (copy / "vigil_engine-9.dist-info").mkdir()
    (copy / "vigil_engine-9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vigil-engine\nVersion: 9\n"
    )
    groups = {
        "vllm.general_plugins": "vigil-engine = vigil_engine.vllm:load",
        "vigil.speculation": "schedule = vigil_engine.schedule",
    }
    points = "".join(f"[{group}]\n{point}\n" for group, point in groups.items())
    (copy / "vigil_engine-9.dist-info" / "entry_points.txt").write_text(points)
    site.env["PYTHONPATH"] = f"{copy}:{site.env['PYTHONPATH']}"

    done = site.watch("vllm-contract", *server, options=("--speculate", "off-above:2"), env=ENV).end()

    assert (done.rc, done.words) == (9, ["degraded"]), done.err + done.out
    (failed,) = done.verdict["expectations"]
    assert "left the engine as it was" in failed["found"]
    assert "Scheduler.make_spec_decoding_stats takes no num_draft_tokens_of_2027" in failed["found"]
    assert answer(site, [{"role": "user", "content": "Hello"}], 8)
    assert "vigil-engine does not switch speculation" in site.log()


def test_plugin_that_is_not_loaded_is_degraded(site: Site, server: list[str]) -> None:
    env = {**ENV, "VLLM_PLUGINS": "none"}
    done = site.watch("vllm-speculate-missing", *server, options=("--speculate", "off-above:2"), env=env).end()
    assert (done.rc, done.words) == (9, ["degraded"]), done.err + done.out
    (failed,) = done.verdict["expectations"]
    assert (failed["met"], "vigil-engine was not loaded" in failed["found"]) == (False, True)
    assert site("spec", "s").rc == 1
    site("stop", "s")


def test_draft_of_wrong_keys_is_told_apart_from_speculation_that_is_off(
    site: Site, server: list[str], tmp_path: Path
) -> None:
    """Without the table of its words by its name, vLLM 0.32 serves the draft all the same, and accepts nothing of it."""
    asked = {**json.loads(server[-1]), "model": str(renamed(DRAFT, tmp_path / "draft", {"d2t": "t2d_of_the_draft"}))}

    wanted = ("--speculate", "off-above:2", "--expect", "speculation", "--no-check")
    done = site.watch("vllm-broken-draft", *server[:-1], json.dumps(asked), options=wanted, env=ENV).end()

    assert (done.rc, done.words) == (9, ["degraded"]), done.err + done.out
    found = {one["expectation"].partition("=")[0]: one for one in done.verdict["expectations"]}
    assert found["speculate"]["met"] is True
    assert found["speculation"]["met"] is False
    assert "of no use" in found["speculation"]["found"]
    told = spec(site)
    assert (told["k"], told["acceptance"]["total"]["length"] < 1.1) == (3, True)


def renamed(draft: Path, into: Path, names: dict[str, str]) -> Path:
    """Write a copy of a draft in which some tensors have other names."""
    into.mkdir()
    shutil.copyfile(draft / "config.json", into / "config.json")
    whole = (draft / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", whole[:8])
    header = {names.get(name, name): one for name, one in json.loads(whole[8 : 8 + size]).items()}
    told = json.dumps(header).encode()
    (into / "model.safetensors").write_bytes(struct.pack("<Q", len(told)) + told + whole[8 + size :])
    return into


def test_answers_are_those_of_a_server_without_speculation_but_for_near_ties(
    site: Site, server: list[str], quick: str, prompts: list[list[dict[str, str]]]
) -> None:
    """Greedy, 48 tokens, four at once, so that speculation is switched to and fro."""
    assert site.watch("vllm-plain", *server[:-2], env=ENV).end().words == ["ready"]
    plain = answers(site.url, prompts[:16], 48, 4)
    site("stop", "s")
    assert site.watch("vllm-switched", *server, options=("--speculate", quick), env=ENV).end().words == ["ready"]
    switched = answers(site.url, prompts[:8], 48, 1) + answers(site.url, prompts[8:16], 48, 4)
    assert spec(site)["switches"] >= 1
    row = judged(plain, switched, TIE_NATS)
    assert (row["answers"], row["elsewhere"]) == (16, []), row
