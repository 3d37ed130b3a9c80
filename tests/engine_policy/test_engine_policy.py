"""When speculation is dropped and taken up again: the policy over traces of loads."""

import json
import random
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigil_engine.policy import AUTO, OFF, ON, Policy, Schedule, State, Tier, k_of, step, told
from vigil_engine.schedule import off_above, parse

SMALL = Policy(dwell_steps=4, rest_steps=10, most_rest_steps=80, calm_steps=200)
TWO = Schedule((Tier(3), Tier(0, 40, 28)), SMALL)
THREE = Schedule((Tier(5), Tier(2, 16, 12), Tier(0, 64, 48)), SMALL)
STEPS_A_MINUTE = 7500  # of 8 ms


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    policy = Policy(draw(st.integers(1, 9)), draw(st.integers(1, 30)), 60, draw(st.integers(1, 200)))
    tiers, above, below = [Tier(9)], 0, 1
    for k in sorted(draw(st.sets(st.integers(0, 8), min_size=1, max_size=3)), reverse=True):
        above += draw(st.integers(1, 20))
        below = draw(st.integers(below + 1, max(below + 1, above)))
        above = max(above, below - 1)
        tiers.append(Tier(k, above, below))
    return Schedule(tuple(tiers), policy)


def states(schedule: Schedule, loads: list[int], state: State | None = None) -> list[State]:
    state, passed = state or State(), []
    for load in loads:
        state = step(schedule, state, load)
        passed.append(state)
    return passed


def changes_of(passed: list[State]) -> list[int]:
    """Return the steps at which the tier changed."""
    return [later.steps for earlier, later in pairwise([State(), *passed]) if later.tier != earlier.tier]


@settings(max_examples=300, deadline=None)
@given(schedules(), st.lists(st.integers(1, 80), max_size=600))
def test_two_changes_are_never_closer_than_the_dwell_and_the_rest(schedule: Schedule, loads: list[int]) -> None:
    passed = states(schedule, loads)
    changes = changes_of(passed)
    assert all(later - earlier >= schedule.policy.rest_steps for earlier, later in pairwise(changes))
    assert all(later - earlier >= schedule.policy.dwell_steps for earlier, later in pairwise([0, *changes]))


@settings(max_examples=300, deadline=None)
@given(schedules(), st.lists(st.integers(1, 80), max_size=300), st.integers(1, 80))
def test_load_that_stays_ends_in_a_tier_it_belongs_to(schedule: Schedule, before: list[int], load: int) -> None:
    policy = schedule.policy
    state = states(schedule, before + [load] * (policy.most_rest_steps + 2 * policy.dwell_steps + 1))[-1]
    tiers = schedule.tiers
    assert state.tier + 1 == len(tiers) or load <= tiers[state.tier + 1].above
    assert state.tier == 0 or load >= tiers[state.tier].below


@settings(max_examples=200, deadline=None)
@given(schedules(), st.lists(st.integers(1, 80), max_size=300))
def test_state_keeps_its_bounds(schedule: Schedule, loads: list[int]) -> None:
    for state in states(schedule, loads):
        assert 0 <= state.tier < len(schedule.tiers)
        assert abs(state.pressure) <= schedule.policy.dwell_steps
        assert state.rest <= schedule.policy.most_rest_steps


def test_speculation_is_dropped_above_and_taken_up_below() -> None:
    up = states(TWO, [10] * 20 + [41] * 4)
    assert [k_of(TWO, state) for state in up[-2:]] == [3, 0]
    down = states(TWO, [35] * 100 + [27] * 4, up[-1])
    assert [k_of(TWO, state) for state in down[-2:]] == [0, 3]


def test_load_between_the_thresholds_changes_nothing() -> None:
    assert {state.tier for state in states(TWO, [40, 28, 30] * 200)} == {0}


def test_step_far_away_now_and_then_changes_nothing() -> None:
    assert {state.tier for state in states(TWO, [200, 30, 30] * 200)} == {0}


def test_load_beyond_two_tiers_goes_to_the_second_at_once() -> None:
    passed = states(THREE, [65] * 4)
    assert [state.tier for state in passed] == [0, 0, 0, 2]
    assert states(THREE, [1] * 10, passed[-1])[-1].tier == 0


def test_changes_that_take_each_other_back_rest_ever_longer() -> None:
    changes = changes_of(states(TWO, ([41] * 30 + [27] * 30) * 40))
    gaps = [later - earlier for earlier, later in pairwise(changes)]
    assert gaps[0] < gaps[-1]
    assert gaps[-1] >= SMALL.most_rest_steps


def test_calm_spell_halves_the_rest() -> None:
    restless = states(TWO, ([41] * 30 + [27] * 30) * 40)[-1]
    assert restless.rest == SMALL.most_rest_steps
    at = 41 if restless.tier == 0 else 27
    calm = [30] * (3 * SMALL.calm_steps)
    changed = states(TWO, [*calm, *[at] * 4], restless)[-1]
    assert changed.switches == restless.switches + 1
    assert changed.rest == 2 * SMALL.most_rest_steps // 8


def test_load_far_beyond_ends_the_rest_early() -> None:
    back = State(steps=1000, tier=0, changed_at=1000, way=-1, rest=80)
    rested_a_little = states(TWO, [30] * SMALL.rest_steps, back)[-1]
    assert states(TWO, [41] * 4, rested_a_little)[-1].tier == 0
    assert states(TWO, [80] * 4, rested_a_little)[-1].tier == 1


def test_mode_told_is_in_force_at_the_next_step_and_until_told_otherwise() -> None:
    state = states(TWO, [50] * 10)[-1]
    on = states(TWO, [50] * 500, told(state, ON))
    assert {k_of(TWO, one) for one in on} == {3}
    off = states(TWO, [1] * 500, told(on[-1], OFF))
    assert {k_of(TWO, one) for one in off} == {0}
    auto = states(TWO, [50] * 4, told(off[-1], AUTO))
    assert [k_of(TWO, one) for one in auto] == [3, 3, 3, 0]
    assert told(auto[-1], AUTO) is auto[-1]
    with pytest.raises(ValueError, match="no mode 'maybe'"):
        told(state, "maybe")


def poisson(mean: float, minutes: int, seed: int) -> list[int]:
    """Return the loads of `minutes` of steps of 8 ms: requests arrive at random and live 2.5 s on average."""
    rng = random.Random(seed)
    ends, arrival, loads = [], 0.0, []
    for number in range(minutes * STEPS_A_MINUTE):
        now = number * 0.008
        while arrival <= now:
            ends.append(arrival + rng.expovariate(1 / 2.5))
            arrival += rng.expovariate(mean / 2.5)
        ends = [end for end in ends if end > now]
        if ends:
            loads.append(len(ends))
    return loads


@pytest.mark.parametrize("mean", [40, 35])
def test_load_that_hovers_at_the_threshold_switches_four_times_a_minute_at_most(mean: float) -> None:
    schedule = parse(off_above(40, 3, "vllm"))
    loads = poisson(mean, 3, seed=1)
    passed = states(schedule, loads)
    changes = changes_of(passed)
    bare = sum((earlier > 40) != (later > 40) for earlier, later in pairwise(loads))
    assert bare > 100  # the trace does hover
    assert changes
    assert max(sum(at <= other < at + STEPS_A_MINUTE for other in changes) for at in changes) <= 4


RANK = """
import json, sys
from vigil_engine.policy import State, k_of, step, told
from vigil_engine.schedule import off_above, parse
schedule, state, ks = parse(off_above(6, 3, "vllm")), State(), []
for load, mode in json.load(sys.stdin):
    state = step(schedule, told(state, mode) if mode else state, load)
    ks.append(k_of(schedule, state))
json.dump(ks, sys.stdout)
"""


def test_two_ranks_told_the_same_decide_the_same() -> None:
    rng = random.Random(3)
    trace = [(rng.choice((1, 5, 6, 7, 30)) if number % 2000 < 1000 else 9, None) for number in range(20_000)]
    trace[5000], trace[7000], trace[9000] = (9, OFF), (9, ON), (9, AUTO)
    ranks = [
        subprocess.run(
            [sys.executable, "-c", RANK],
            input=json.dumps(trace),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    told_by = [json.loads(rank.stdout) for rank in ranks]
    assert told_by[0] == told_by[1]
    assert set(told_by[0]) == {0, 3}
