"""What `--speculate` makes of SGLang's commands, and which it refuses, with the reason."""

import json
import shlex

import pytest

from vigil.errors import UsageError
from vigil.plan import Plan
from vigil.preflight.check_switching import check_switching
from vigil.speculation.arrange import Arranged, arrange
from vigil.speculation.schedules import schedules
from vigil.speculation.wish import read_wish
from vigil.supervise.ahead import command_of

SERVER = "python -m sglang.launch_server --model-path m --port 1"
EAGLE = "--speculative-algorithm EAGLE3 --speculative-draft-model-path d --speculative-num-steps 3 --speculative-eagle-topk 1"


def arranged(command: str, wish: str = "off-above:32", text: str | None = None) -> Arranged:
    return arrange(command_of(Plan(command=tuple(shlex.split(command)))), read_wish(wish), schedules(), text)


def test_sglang_is_asked_for_its_adaptive_mode_and_a_file_beside_the_start() -> None:
    found = arranged(f"{SERVER} {EAGLE}")

    added = " --speculative-adaptive --speculative-adaptive-config {vigil-engine}/adaptive.json "
    assert added in " ".join(found.words)
    assert json.loads(found.placed["adaptive.json"]) == {
        "1": {"candidate_steps": [3]},
        "33": {"candidate_steps": [0]},
    }
    assert json.loads(found.schedule)["tiers"] == [{"k": 3}, {"k": 0, "above": 32, "below": 24}]


def test_every_k_has_a_slot_even_one_that_only_a_word_brings_into_force() -> None:
    schedule = {
        "schema": 1, "engine": "sglang", "k": 3, "measured_on": None,
        "tiers": [{"k": 3}, {"k": 1, "above": 16, "below": 12}],
    }  # fmt: skip
    found = arranged(f"{SERVER} {EAGLE}", "schedule.json", json.dumps(schedule))

    slots = json.loads(found.placed["adaptive.json"])
    assert {slot["candidate_steps"][0] for slot in slots.values()} == {0, 1, 3}
    assert slots["17"] == {"candidate_steps": [1]}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SERVER, "asks for no speculation"),
        (f"{SERVER} --speculative-algorithm NGRAM", "EAGLE and EAGLE3 alone"),
        (f"{SERVER} {EAGLE} --speculative-adaptive", "of its own"),
        (f"{SERVER} --speculative-algorithm EAGLE3 --speculative-eagle-topk 1", "--speculative-num-steps 3"),
        (f"{SERVER} --speculative-algorithm EAGLE3 --speculative-num-steps 3", "is not given, and is more than 1"),
        (f"{SERVER} {EAGLE} --speculative-eagle-topk 8", "is 8: SGLang switches chains alone"),
        (f"{SERVER} {EAGLE} --speculative-num-draft-tokens 8", "a chain of 3 steps has 4"),
        (f"{SERVER} {EAGLE} --tp 2 --dp 2 --enable-dp-attention", "attention data parallel"),
        (f"{SERVER} {EAGLE} --pp-size 2", "pipeline parallel"),
        (f"{SERVER} {EAGLE} --max-running-requests 32", "never reached: --max-running-requests is 32"),
    ],
)
def test_what_sglang_cannot_switch_is_refused_with_its_reason(command: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        arranged(command)


def test_a_threshold_beyond_sglangs_own_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="lets 48 run at once"):
        arranged(f"{SERVER} {EAGLE}", "off-above:64")

    assert arranged(f"{SERVER} {EAGLE} --max-running-requests 256", "off-above:64").placed


@pytest.mark.parametrize(
    ("version", "codes"), [((0, 5, 13), ["FLAG002"]), ((0, 5, 14), []), ((0, 5, 23), []), (None, [])]
)
def test_sglang_without_a_step_of_no_drafts_is_refused_before_the_start(
    version: tuple[int, ...] | None, codes: list[str]
) -> None:
    plan = Plan(command=arranged(f"{SERVER} {EAGLE}").words)

    assert [one.code for one in check_switching(command_of(plan), version)] == codes
