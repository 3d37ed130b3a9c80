"""The schedule file: what it says, and what is wrong with it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigil_engine.policy import Schedule, Tier
from vigil_engine.schedule import ScheduleError, all_k, digest, off_above, parse, read

GOOD: dict[str, Any] = {
    "schema": 1,
    "engine": "vllm",
    "k": 3,
    "tiers": [{"k": 3}, {"k": 1, "above": 40, "below": 28}, {"k": 0, "above": 100, "below": 80.5}],
    "dwell_steps": 32,
    "rest_steps": 500,
    "most_rest_steps": 3000,
    "calm_steps": 6000,
    "measured_on": {"gpu": "NVIDIA H200"},
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**GOOD, **fields}


def test_schedule_is_read_with_its_tiers() -> None:
    schedule = parse(read(json.dumps(GOOD)))
    assert schedule.tiers == (Tier(3), Tier(1, 40, 28), Tier(0, 100, 80.5))
    assert schedule.policy.rest_steps == 500
    assert all_k(schedule) == [0, 1, 3]


def test_schedule_without_numbers_has_the_defaults() -> None:
    assert parse({name: GOOD[name] for name in ("schema", "engine", "k", "tiers")}) == Schedule(parse(GOOD).tiers)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (changed(schema=2), "the schedule's schema is 2; 1 is known here"),
        (changed(engine="llamacpp"), "the schedule is for the engine 'llamacpp'; sglang and vllm can switch"),
        (changed(k=4), "`k` is 4, and the first tier's k is 3: they are the same number"),
        (changed(treshold=3), "a schedule has no 'treshold' (it has schema, engine,"),
        (changed(tiers=[]), "`tiers` is no list of 1 to 64 tiers"),
        (changed(tiers=[{"k": 3, "above": 2}]), "tier 1 is no object of k"),
        (changed(tiers=[{"k": 3}, {"k": 0}]), "tier 2 is no object of above, below, k"),
        (changed(tiers=[{"k": True}]), "tier 1: k is True; from 0 to 64"),
        (
            changed(tiers=[{"k": 3}, {"k": 3, "above": 4, "below": 2}]),
            "tier 2: k is 3 after 3; it falls as the load rises",
        ),
        (changed(tiers=[{"k": 3}, {"k": 0, "above": 4, "below": 6}]), "tier 2: below (6) is over above (4)"),
        (
            changed(tiers=[{"k": 3}, {"k": 0, "above": 4, "below": 1}]),
            "tier 2: below is 1: no load of 1 or more is less",
        ),
        (
            changed(tiers=[{"k": 3}, {"k": 0, "above": "4", "below": 3}]),
            "tier 2: above is '4'; a number of running requests from 1 on",
        ),
        (
            changed(tiers=[{"k": 3}, {"k": 1, "above": 9, "below": 8}, {"k": 0, "above": 9, "below": 9}]),
            "tier 3: its thresholds (9, 9) do not rise",
        ),
        (changed(dwell_steps=0), "dwell_steps is 0; a number of steps from 1 on"),
        (changed(rest_steps=1.5), "rest_steps is 1.5; a number of steps from 1 on"),
        (changed(most_rest_steps=7), "most_rest_steps (7) is less than rest_steps (500)"),
        (changed(measured_on="H200"), "`measured_on` is neither null nor an object"),
    ],
)
def test_schedule_that_is_wrong_is_one_clear_line(held: dict[str, Any], said: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse(held)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        "NaN",
        '{"schema": 1, "engine": "vllm", "k": 1, "tiers": [{"k": 1}, {"k": 0, "above": NaN, "below": 2}]}',
    ],
)
def test_text_that_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        read(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "above"]), inner),
)


@settings(deadline=None)
@given(JSON)
def test_anything_else_is_an_error_of_one_line(anything: Any) -> None:
    with pytest.raises(ScheduleError) as caught:
        read(json.dumps(anything))
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.integers(1, 4096), st.integers(1, 16))
def test_off_above_is_left_again_below_what_enters_it(most: int, k: int) -> None:
    tier = parse(off_above(most, k, "vllm")).tiers[1]
    assert (tier.k, tier.above) == (0, most)
    assert 1 < tier.below <= most + 1


def test_off_above_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ScheduleError, match="off above 0 running requests: 1 is the least"):
        off_above(0, 3, "vllm")
    with pytest.raises(ScheduleError, match="0 draft tokens a step"):
        off_above(4, 0, "vllm")


def test_digest_is_of_what_decides() -> None:
    assert digest(parse(GOOD)) == digest(parse(changed(measured_on=None, engine="sglang")))
    assert digest(parse(GOOD)) != digest(parse(changed(dwell_steps=33)))
    assert digest(parse(GOOD)) == digest(
        parse(changed(tiers=[{"k": 3}, {"k": 1, "above": 40.0, "below": 28}, {"k": 0, "above": 100, "below": 80.5}]))
    )
