"""`vigil up --speculate` and `vigil spec`, with a fake vLLM that has the plugin's own decider inside, or has not."""

import json
import os
import sys
from pathlib import Path

import pytest
from vigil_cli import FAKES, Result, Vigil

from vigil.cli.spec import lines_of

CONFIG = json.dumps({"method": "eagle3", "model": "/draft", "num_speculative_tokens": 3})
DECIDING = f"""#!{sys.executable}
import os, runpy, signal, sys
from vigil_engine.attestation import Attestation
from vigil_engine.control import listen
from vigil_engine.decider import Decider
from vigil_engine.schedule import read

if os.environ.get("RANKS") and not os.fork():  # as SGLang's second rank does: it decides, and has no socket
    told = Attestation(os.environ["VIGIL_ENGINE_DIR"], "vllm", "0.32.0", "TP1")
    Decider(read(os.environ["VIGIL_ENGINE_SCHEDULE"]), told).step(1)
    signal.pause()
told = Attestation(os.environ["VIGIL_ENGINE_DIR"], "vllm", "0.32.0", "TP0" if os.environ.get("RANKS") else "")
if os.environ.get("REFUSE"):
    told.refused.append("Scheduler.schedule does not use dynamic_sd_lookup")
decider = Decider(read(os.environ["VIGIL_ENGINE_SCHEDULE"]), told)
for load in (1, 1, 1):
    decider.step(load)
told.write()
listen(os.environ["VIGIL_ENGINE_DIR"], decider)
runpy.run_path({str(FAKES / "bin" / "vllm")!r}, run_name="__main__")
"""


@pytest.fixture
def vllm(tmp_path: Path) -> str:
    path = tmp_path / "bin" / "vllm"
    path.parent.mkdir()
    path.write_text(DECIDING)
    path.chmod(0o755)
    return str(path)


def up(vigil: Vigil, program: str, *more: str, wish: tuple[str, ...] = ("--speculate", "off-above:8")) -> Result:
    # This interpreter has vigil-engine installed: what travels must be found before it, as it would have to be anywhere.
    words = (program, "serve", "/m", "--port", str(vigil.port), "--speculative-config", CONFIG, *more)
    options = ("--no-check", "--env", f"PATH={os.environ['PATH']}", *wish)
    return vigil("up", "--json", "--name", "s", *options, "--", *words, "--load", "0.2s", "--warmup", "0s")


def test_switching_that_was_asked_for_and_is_told_is_ready(vigil: Vigil, vllm: str) -> None:
    done = up(vigil, vllm)
    assert (done.rc, done.word) == (0, "ready"), done.err
    (met,) = done.verdict["expectations"]
    assert (met["met"], "decided in" in met["found"], "mode auto, k 3 now" in met["found"]) == (True, True, True)
    kept = json.loads((vigil.state / "vigil/servers/s/current/plan.json").read_text())
    assert "num_speculative_tokens_per_batch_size" in " ".join(kept["command"])


def test_the_flag_is_never_seen_by_the_engine(vigil: Vigil, vllm: str) -> None:
    done = up(vigil, vllm, "--speculative-disable-batch-threshold", "8", wish=())
    assert (done.rc, done.word) == (0, "ready"), done.err


def test_the_flag_is_checked_as_it_would_be_started(vigil: Vigil) -> None:
    words = ("vllm", "serve", "/m", "--speculative-config", CONFIG, "--speculative-disable-batch-threshold", "8")
    known = vigil("check", "--engine-version", "0.32.0", "--", *words)
    old = vigil("check", "--engine-version", "0.23.0", "--", *words)
    assert "has no flag" not in known.out
    assert "is for `vigil up`" in known.err
    assert (old.rc, "num_speculative_tokens_per_batch_size is no field" in old.out) == (3, True)
    assert "as it would be right" not in old.out


def test_server_that_says_nothing_of_switching_is_degraded(vigil: Vigil) -> None:
    done = up(vigil, str(FAKES / "bin" / "vllm"))
    assert (done.rc, done.word) == (9, "degraded"), done.err
    assert "vigil-engine was not loaded" in done.verdict["expectations"][0]["found"]
    shown = vigil("spec", "s")
    assert (shown.rc, "says nothing of switching" in shown.out) == (1, True)


def test_contract_that_differs_is_degraded_with_its_lines(vigil: Vigil, vllm: str) -> None:
    vigil.env["REFUSE"] = "1"
    done = up(vigil, vllm)
    assert (done.rc, done.word) == (9, "degraded"), done.err
    found = done.verdict["expectations"][0]["found"]
    assert "left the engine as it was: Scheduler.schedule does not use dynamic_sd_lookup" in found


def test_spec_shows_what_is_in_force_and_changes_it(vigil: Vigil, vllm: str) -> None:
    up(vigil, vllm)
    shown = vigil("spec", "s")
    assert shown.rc == 0
    assert "mode auto, k 3 for" in shown.out
    assert "k 3; k 0 above 8, left below 6" in shown.out
    assert "off from the next step on" in vigil("spec", "s", "off").out
    (told,) = json.loads(vigil("spec", "s", "--json").out)["processes"]
    assert (told["pending"], told["mode"], told["deciding"], told["error"]) == ("off", "auto", True, "")


def test_rank_without_a_socket_is_told_from_its_account(vigil: Vigil, vllm: str) -> None:
    vigil.env["RANKS"] = "1"
    done = up(vigil, vllm)
    assert (done.rc, done.word) == (0, "ready"), done.err
    shown = vigil("spec", "s", "off")
    assert shown.rc == 0, shown.out
    assert "TP1, pid" in shown.out
    assert shown.out.count("off from the next step on") == 1
    told = json.loads(vigil("spec", "s", "--json").out)["processes"]
    assert sorted((one["rank"], one["asked"], one["error"]) for one in told) == [("TP0", True, ""), ("TP1", False, "")]


def test_server_that_is_reached_otherwise_is_switched_as_well(vigil: Vigil, vllm: str) -> None:
    done = up(vigil, vllm, wish=("--speculate", "off-above:8", "--reach", "env"))
    assert (done.rc, done.word) == (0, "ready"), done.err
    assert "off from the next step on" in vigil("spec", "s", "off", "--reach", "env").out


def test_spec_of_what_is_not_there_is_one_line(vigil: Vigil) -> None:
    for words, said in (
        (("spec", "s"), "no server named s"),
        (("spec", "s", "of"), "'of': give one of status, on, off, auto"),
    ):
        done = vigil(*words)
        assert (done.rc, said in done.err, done.err.count("\n")) == (2, True, 1)


def test_account_of_a_real_sglang_on_an_h200_is_told() -> None:
    told = json.loads((Path(__file__).parents[1] / "data" / "engine" / "sglang-h200.json").read_text())
    lines = lines_of(told)
    assert lines[0].startswith("TP0, pid 2030 (sglang 0.5.17): mode auto, k 0 (off) for ")
    assert lines[1:] == [
        "  schedule   b5129e129ed8: k 3; k 0 above 16, left below 12",
        "  switches   7 in 9536 steps, 3 in the last minute",
        "  acceptance 2.26 in this spell, 2.56 lately, 2.61 in all (tokens a step)",
    ]


def test_real_sglang_rested_after_each_change_that_nobody_told_it() -> None:
    told = json.loads((Path(__file__).parents[1] / "data" / "engine" / "sglang-h200.json").read_text())
    # Spells 4 and 5 are `off` and `on` by word.
    by_load = [one for n, one in enumerate(told["spells"], 1) if n not in {4, 5}]
    assert all(one["to_step"] - one["step"] >= told["rest_steps"] for one in by_load[1:])
