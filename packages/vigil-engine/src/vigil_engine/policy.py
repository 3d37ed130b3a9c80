"""Which k (draft tokens a step) is in force, from the load alone. Pure: no clock, no I/O, no thread.

A decision depends only on the loads of the steps so far and on the modes told at them: every rank that sees the same steps
decides the same.

Why two thresholds, a dwell and a rest: a load hovers at a threshold, and each switch costs (SGLang changes graphs and buffers;
vllm#49548 lost nine tenths of its throughput by switching each step). Near the threshold both tiers cost about the same, so that
resting in either is cheap; far from it being wrong is dear, so that there the rest is short.
"""

import math
from typing import NamedTuple, Tuple

AUTO, ON, OFF = "auto", "on", "off"
MODES = (AUTO, ON, OFF)
# A load is far from a threshold beyond these shares of it, and beyond so many standard deviations of a Poisson load there
# (around four running requests it hovers between 1 and 8).
FAR_ABOVE, FAR_BELOW, FAR_DEVIATIONS = 2.0, 0.5, 3.0


class Tier(NamedTuple):
    """A k and its loads: entered above `above` running requests, left for the tier before below `below`."""

    k: int
    above: float = 0.0
    below: float = 0.0


class Policy(NamedTuple):
    """How patient the switching is, in decode steps of the engine (some 8 ms each for a model of 8B on an H200).

    `dwell_steps`: how far the steps beyond a threshold must outnumber the others before a change.
    `rest_steps`: how long a tier stays after a change; each change that takes back the one before doubles it, up to
    `most_rest_steps`.
    `calm_steps`: each so many steps without a change halve it again.
    """

    dwell_steps: int = 32
    rest_steps: int = 700
    most_rest_steps: int = 3000
    calm_steps: int = 6000


class Schedule(NamedTuple):
    """Tiers of falling k as the load rises, and the policy that moves between them."""

    tiers: Tuple[Tier, ...]
    policy: Policy = Policy()


class State(NamedTuple):
    """Where the policy stands after some steps.

    `pressure`: above 0 towards more load, under 0 towards less; never beyond `dwell_steps` either way.
    `changed_at`: the step of the last change, 0 for none. `way`: of that change, 1 towards less speculation, -1 towards more,
    0 for none.
    """

    steps: int = 0
    tier: int = 0
    mode: str = AUTO
    pressure: int = 0
    changed_at: int = 0
    way: int = 0
    rest: int = 0
    switches: int = 0


def k_of(schedule: Schedule, state: State) -> int:
    """Return the k in force."""
    return 0 if state.mode == OFF else schedule.tiers[state.tier].k


def step(schedule: Schedule, state: State, load: int) -> State:
    """Return the state after one decode step with `load` running requests.

    The bound on changes: two are at least the rest apart, `rest_steps` at first and soon `most_rest_steps` where they take each
    other back: with the defaults and steps of 8 ms at most 4 in any minute, and 2.5 before long. A load that goes far beyond both
    thresholds in turn (`_far`: at least twice `above`, at most half of `below`) ends the rest at `rest_steps`, so that there
    11 a minute are possible, each of them to where the load is.
    """
    steps = state.steps + 1
    if state.mode != AUTO:
        return state._replace(steps=steps)
    policy = schedule.policy
    aim = _aim(schedule.tiers, state.tier, load)
    pressure = state.pressure
    if aim != state.tier:
        pressure += 1 if aim > state.tier else -1
        pressure = max(-policy.dwell_steps, min(policy.dwell_steps, pressure))
    elif pressure:
        pressure -= 1 if pressure > 0 else -1
    if aim != state.tier and pressure == (policy.dwell_steps if aim > state.tier else -policy.dwell_steps):
        rest = _rest(policy, state, steps)
        if not state.way or steps - state.changed_at >= (
            policy.rest_steps if _far(schedule.tiers, state.tier, aim, load) else rest
        ):
            return _changed(policy, state, steps, aim, rest)
    return state._replace(steps=steps, pressure=pressure)


def told(state: State, mode: str) -> State:
    """Return the state after somebody asked for a mode; it counts from the next step.

    Back at `auto`, speculation is on until the load says otherwise.

    Raises:
        ValueError: There is no such mode.

    """
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}: {', '.join(MODES)}")
    if mode == state.mode:
        return state
    return state._replace(mode=mode, tier=0, pressure=0, way=0, rest=0, changed_at=state.steps)


def _aim(tiers: Tuple[Tier, ...], at: int, load: int) -> int:
    """Return the tier that this load belongs to, seen from the tier in force: the one itself between the two thresholds."""
    aim = at
    while aim + 1 < len(tiers) and load > tiers[aim + 1].above:
        aim += 1
    while aim == at > 0 and load < tiers[aim].below:
        aim = at = aim - 1
    return aim


def _far(tiers: Tuple[Tier, ...], at: int, aim: int, load: int) -> bool:
    if aim > at:
        above = tiers[at + 1].above
        return load >= max(FAR_ABOVE * above, above + FAR_DEVIATIONS * math.sqrt(above))
    below = tiers[at].below
    return load <= min(FAR_BELOW * below, below - FAR_DEVIATIONS * math.sqrt(below))


def _rest(policy: Policy, state: State, steps: int) -> int:
    """Return the rest that the last change is owed: halved for each calm spell since it."""
    spells = (steps - state.changed_at) // policy.calm_steps
    return max(policy.rest_steps, state.rest >> spells)


def _changed(policy: Policy, state: State, steps: int, aim: int, rest: int) -> State:
    way = 1 if aim > state.tier else -1
    doubled = min(policy.most_rest_steps, rest * 2) if way == -state.way else rest
    return state._replace(
        steps=steps, tier=aim, pressure=0, changed_at=steps, way=way, rest=doubled, switches=state.switches + 1
    )
