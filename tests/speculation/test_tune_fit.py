"""The tiers of a schedule from what was measured: least loss, no win within the noise, and where they change."""

import json
import math
from typing import Any

import pytest

from vigil.errors import UsageError
from vigil.plan import Plan
from vigil.speculation.arms import arms_of, loads_of
from vigil.speculation.fit import Load, Tier, fit
from vigil.speculation.measured import differences, schedule_of
from vigil.speculation.place import place_of
from vigil.speculation.proof import loads_to_prove, proven, words_of_proof
from vigil.speculation.ramp import Held, allowed, held_of
from vigil.speculation.schedules import schedules
from vigil.speculation.words import turns, words_of
from vigil.supervise.ahead import command_of

CONFIG = {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}
VLLM = ("vllm", "serve", "/m", "--speculative-config", json.dumps(CONFIG))
SGLANG = (
    "python", "-m", "sglang.launch_server", "--model-path", "/m", "--speculative-algorithm", "EAGLE3",
    "--speculative-draft-model-path", "/d", "--speculative-num-steps", "3", "--speculative-eagle-topk", "1",
    "--speculative-num-draft-tokens", "4", "--port", "30000",
)  # fmt: skip


def load(at: int, noise: float = 0.001, **speeds: float) -> Load:
    """Three rounds of each arm, `k3=200`, a little apart."""
    rounds = (1 - noise, 1.0, 1 + noise)
    shift = {name: rounds[n % 3 :] + rounds[: n % 3] for n, name in enumerate(speeds)}
    return Load(
        load=at, speeds={int(name[1:]): [(speed * one,) for one in shift[name]] for name, speed in speeds.items()}
    )


CROSSING = (
    load(1, k0=100, k1=150, k3=190),
    load(8, k0=700, k1=850, k3=900),
    load(32, k0=2000, k1=2200, k3=1900),
    load(128, k0=5000, k1=4000, k3=3100),
)


def test_tiers_follow_the_best_arm_and_change_where_the_curves_cross() -> None:
    found = fit(CROSSING)
    assert found is not None
    assert found.chosen == {1: 3, 8: 3, 32: 1, 128: 0}
    first, second, third = found.tiers
    assert (first.k, second.k, third.k) == (3, 1, 0)
    share = math.log(900 / 850) / (math.log(900 / 850) + math.log(2200 / 1900))
    assert second.above == math.floor(2 ** (3 + 2 * share))
    assert second.below == math.ceil(second.above * 0.75)
    assert 32 <= (third.above or 0) < 128
    schedules().read(json.dumps(schedule_of(found, "vllm", {})))
    assert words_of(found).endswith(": 1.9x at 1, 1.00x at 128, against 0.62x for k 3 left on")


def test_a_win_within_the_noise_is_no_tier_of_its_own() -> None:
    noisy = (load(1, k0=100, k1=150, k3=190), load(8, 0.2, k0=700, k1=905, k3=900), load(16, k0=700, k1=400, k3=400))
    found = fit(noisy)
    assert found is not None
    assert [one.k for one in found.tiers] == [3, 0]


def test_k_never_rises_with_the_load() -> None:
    found = fit((load(1, k0=100, k3=95), load(8, k0=100, k3=150), load(32, k0=100, k3=50)))
    assert found is not None
    assert found.chosen == {1: 3, 8: 3, 32: 0}


@pytest.mark.parametrize(
    ("loads", "kind", "words"),
    [
        ((load(1, k0=100, k3=60), load(8, k0=100, k3=50)), "never", "start it without speculation"),
        ((load(1, k0=100, k3=190), load(8, k0=100, k3=120)), "always", "start it with k 3, and do not switch"),
        ((load(1, 0.5, k0=100, k3=101), load(8, 0.5, k0=100, k3=99)), "inconclusive", "more --seconds or --repeats"),
    ],
)
def test_answers_without_a_schedule(loads: tuple[Load, ...], kind: str, words: str) -> None:
    found = fit(loads)
    assert found is not None
    assert found.kind == kind
    assert words in words_of(found)


def test_an_arm_that_died_at_a_load_is_not_chosen_there_and_without_off_there_is_no_answer() -> None:
    found = fit((load(1, k0=100, k3=190), load(8, k0=100, k1=150)))
    assert found is not None
    assert found.chosen == {1: 3, 8: 1}
    assert fit((load(1, k3=190),)) is None


def test_thresholds_of_neighbouring_small_loads_still_rise() -> None:
    found = fit((load(1, k0=1, k1=2, k3=3), load(2, k0=1, k1=2, k3=1), load(3, k0=3, k1=1, k3=1)))
    assert found is not None
    schedules().read(json.dumps(schedule_of(found, "sglang", {})))


def test_arms_of_vllm() -> None:
    arms = arms_of(command_of(Plan(command=VLLM)), (1, 5))
    assert list(arms.words) == ["off", "k5", "k3", "k1"]
    assert arms.words["off"] == ("vllm", "serve", "/m")
    assert json.loads(arms.words["k5"][-1]) == {**CONFIG, "num_speculative_tokens": 5}
    assert (arms.words["k3"], arms.own) == (VLLM, 3)


def test_arms_of_sglang() -> None:
    arms = arms_of(command_of(Plan(command=SGLANG)))
    assert list(arms.words) == ["off", "k3", "k1"]
    assert arms.words["off"] == (*SGLANG[:5], "--port", "30000")
    one = arms.words["k1"]
    assert (one[one.index("--speculative-num-steps") + 1], one[one.index("--speculative-num-draft-tokens") + 1]) == (
        "1",
        "2",
    )


def test_arms_of_what_cannot_switch_are_on_and_off_with_the_reason() -> None:
    llama = (
        "llama-server",
        "-m",
        "m.gguf",
        "-md",
        "d.gguf",
        "--spec-draft-n-max",
        "4",
        "-ngld",
        "9",
        "--parallel",
        "6",
    )
    command = command_of(Plan(command=llama))
    arms = arms_of(command)
    assert arms.words == {"off": (*llama[:3], "--parallel", "6"), "on": llama}
    assert "cannot switch" in arms.cannot
    assert loads_of(command) == (1, 2, 4, 6)
    tree = tuple("4" if word == "1" else word for word in SGLANG)
    assert "--speculative-eagle-topk is 4" in arms_of(command_of(Plan(command=tree))).cannot
    found = fit((load(1, k0=100, k1=150), load(4, k0=200, k1=100)))
    assert found is not None
    assert turns(found).startswith("start it with speculation at 1, without speculation at 4 at once")


def test_arms_of_no_speculation_are_refused() -> None:
    with pytest.raises(UsageError, match="asks for no speculation"):
        arms_of(command_of(Plan(command=("vllm", "serve", "/m"))))


def test_place_is_the_commands_whatever_port_host_and_name() -> None:
    same = Plan(command=(*VLLM, "--port", "9", "--host=0.0.0.0", "--served-model-name", "x"), name="n")
    assert place_of(same) == place_of(Plan(command=VLLM))
    assert place_of(Plan(command=(*VLLM, "--max-num-seqs", "9"))) != place_of(Plan(command=VLLM))


def test_differences_name_what_is_another_and_say_nothing_of_what_is_not_known() -> None:
    was: dict[str, Any] = {
        "engine": "vllm",
        "gpu": ["H200"],
        "draft": {"given": "/d", "weights": "aa"},
        "version": "0.32",
    }
    assert differences(was, {**was, "gpu": [], "version": None}) == []
    now = {**was, "gpu": ["A100"], "draft": {"given": "/e", "weights": "bb"}}
    assert differences(was, now) == ["GPU A100 (measured on H200)", "draft /e (measured on /d; its weights differ)"]


TIERS = (Tier(k=3), Tier(k=0, above=40, below=28))


@pytest.mark.parametrize(("at", "ks"), [(1, {3}), (27, {3}), (28, {0, 3}), (40, {0, 3}), (41, {0})])
def test_both_k_are_allowed_between_the_thresholds(at: int, ks: set[int]) -> None:
    assert allowed(TIERS, at) == ks


def test_held_tells_the_acceptance_around_the_last_off_spell() -> None:
    spells = [{"k": 3, "drafts": 500, "length": 2.5}, {"k": 0, "drafts": 0, "length": None}]
    now = {"k": 3, "switches": 2, "spells": spells, "acceptance": {"spell": {"drafts": 400, "length": 2.4}}}
    held = held_of(Held(load=1, up=False), now, 3.0)
    assert (held.k, held.switches, held.before, held.after, held.drafts) == (3, 2, 2.5, 2.4, (500, 400))


def test_proof_names_flapping_a_wrong_k_and_lost_acceptance() -> None:
    found = fit((load(1, k0=100, k3=190), load(8, k0=100, k3=50)))
    assert found is not None
    assert loads_to_prove(found) == (1, 8)
    ramp = (
        Held(load=1, up=True, k=3),
        Held(load=8, up=True, k=3, switches=6),
        Held(load=1, up=False, k=3, switches=9, before=3.0, after=1.5, drafts=(1000, 1000)),
    )
    text = words_of_proof(found, proven(found, (), ramp, {"off": 0, "k3": 3}))
    assert text.startswith("NOT proven")
    assert "at 8 at once on the way up k 3 was in force, not 0" in text
    assert "it flaps: 9 switches on a ramp that needs 2" in text
    assert "acceptance is 1.50 tokens a step after the off spell, and was 3.00" in text
    assert "at 1 at once the scheduled server was not measured" in text
