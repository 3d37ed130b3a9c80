"""The schedule file: which k (draft tokens a step) for which load, how patiently it is switched, and what it was measured on."""

import hashlib
import json
import math
from typing import Any, Dict, List, Mapping, Optional

from .policy import Policy, Schedule, Tier

SCHEMA = 1
ENGINES = ("sglang", "vllm")
MOST_K = 64
_KEYS = ("schema", "engine", "k", "tiers", *Policy._fields, "measured_on")
_BELOW = 0.75  # of `above`: some two standard deviations of a Poisson load at 40, one at 10


class ScheduleError(ValueError):
    """What is wrong with a schedule, in one line."""


def off_above(most: int, k: int, engine: str) -> Dict[str, Any]:
    """Return the schedule that drops speculation above `most` running requests, and takes it up below three quarters of them.

    Raises:
        ScheduleError: A number makes no sense.

    """
    if most < 1:
        raise ScheduleError(f"off above {most} running requests: 1 is the least (with none, leave speculation out)")
    if not 1 <= k <= MOST_K:
        raise ScheduleError(f"{k} draft tokens a step: from 1 to {MOST_K}")
    below = min(most + 1, max(2, math.ceil(most * _BELOW)))
    tiers = [{"k": k}, {"k": 0, "above": most, "below": below}]
    return {"schema": SCHEMA, "engine": engine, "k": k, "tiers": tiers, **Policy()._asdict(), "measured_on": None}


def read(text: str) -> Dict[str, Any]:
    """Return what a schedule file says, checked.

    Raises:
        ScheduleError: It is no schedule; the line says what is wrong.

    """
    try:
        held = json.loads(text)
    except ValueError as error:
        raise ScheduleError(f"the schedule is no JSON: {error}") from None
    if not isinstance(held, dict):
        raise ScheduleError("the schedule is no JSON object")
    parse(held)
    return held


def parse(held: Mapping[str, Any]) -> Schedule:
    """Return the schedule that a file's object stands for.

    Raises:
        ScheduleError: The line says what is wrong.

    """
    _check_head(held)
    tiers = tuple(_tier(one, number) for number, one in enumerate(held["tiers"]))
    _check_order(tiers)
    if tiers[0].k != held["k"]:
        raise ScheduleError(f"`k` is {held['k']}, and the first tier's k is {tiers[0].k}: they are the same number")
    policy = Policy(*(_steps(held, name) for name in Policy._fields))
    if policy.most_rest_steps < policy.rest_steps:
        raise ScheduleError(f"most_rest_steps ({policy.most_rest_steps}) is less than rest_steps ({policy.rest_steps})")
    return Schedule(tiers, policy)


def digest(schedule: Schedule) -> str:
    """Return a short name of what decides: equal for two schedules that switch alike, whatever they were measured on."""
    words = json.dumps([[float(value) for value in tier] for tier in schedule.tiers] + [list(schedule.policy)])
    return hashlib.sha256(words.encode()).hexdigest()[:12]


def all_k(schedule: Schedule) -> List[int]:
    """Return every k that may be in force, rising; 0 always, since somebody may say `off`."""
    return sorted({0, *(tier.k for tier in schedule.tiers)})


def _check_head(held: Mapping[str, Any]) -> None:
    unknown = sorted(set(held) - set(_KEYS))
    if unknown:
        raise ScheduleError(f"a schedule has no {unknown[0]!r} (it has {', '.join(_KEYS)})")
    if held.get("schema") != SCHEMA:
        raise ScheduleError(f"the schedule's schema is {held.get('schema')!r}; {SCHEMA} is known here")
    if held.get("engine") not in ENGINES:
        raise ScheduleError(
            f"the schedule is for the engine {held.get('engine')!r}; {' and '.join(ENGINES)} can switch"
        )
    tiers = held.get("tiers")
    if not isinstance(tiers, list) or not 1 <= len(tiers) <= MOST_K:
        raise ScheduleError(f"`tiers` is no list of 1 to {MOST_K} tiers")
    measured = held.get("measured_on")
    if measured is not None and not isinstance(measured, dict):
        raise ScheduleError("`measured_on` is neither null nor an object")


def _tier(one: Any, number: int) -> Tier:
    """Return a tier of the file; the first has no thresholds, each other one both."""
    where = f"tier {number + 1}"
    wanted = {"k"} if number == 0 else {"k", "above", "below"}
    if not isinstance(one, dict) or set(one) != wanted:
        raise ScheduleError(f"{where} is no object of {', '.join(sorted(wanted))}")
    if not _is_count(one["k"]) or one["k"] > MOST_K:
        raise ScheduleError(f"{where}: k is {one['k']!r}; from 0 to {MOST_K}")
    if number == 0:
        return Tier(one["k"])
    above, below = one["above"], one["below"]
    for name, value in (("above", above), ("below", below)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value < math.inf:
            raise ScheduleError(f"{where}: {name} is {value!r}; a number of running requests from 1 on")
    if below > math.floor(above) + 1:
        raise ScheduleError(
            f"{where}: below ({below}) is over above ({above}): it would leave the tier where it enters it"
        )
    if below <= 1:
        raise ScheduleError(f"{where}: below is {below}: no load of 1 or more is less, so that it would never be left")
    return Tier(one["k"], above, below)


def _check_order(tiers: "tuple[Tier, ...]") -> None:
    for number in range(1, len(tiers)):
        before, after, where = tiers[number - 1], tiers[number], f"tier {number + 1}"
        if after.k >= before.k:
            raise ScheduleError(f"{where}: k is {after.k} after {before.k}; it falls as the load rises")
        if after.above <= before.above or after.below <= before.below:
            raise ScheduleError(
                f"{where}: its thresholds ({after.above}, {after.below}) do not rise ({before.above}, {before.below} before it)"
            )


def _steps(held: Mapping[str, Any], name: str) -> int:
    value: Optional[Any] = held.get(name, Policy._field_defaults[name])
    if not _is_count(value) or not 1 <= value <= 10**9:  # type: ignore[operator]  # a count is an int
        raise ScheduleError(f"{name} is {value!r}; a number of steps from 1 on")
    return int(value)  # type: ignore[arg-type]  # as above


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
