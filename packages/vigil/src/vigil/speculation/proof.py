"""Whether a schedule holds what its fit promised: the scheduled server beside off and each fixed k, and a ramp of loads. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

import msgspec

from vigil.bench.intervals import Interval, answer, ratio
from vigil.bench.row import Row
from vigil.speculation.arms import OFF
from vigil.speculation.fit import Fit, speed
from vigil.speculation.ramp import LEAST_DRAFTS, Held, allowed
from vigil.speculation.words import thresholds, times

SCHEDULED = "scheduled"
WORTH = 0.95
"""Under this share of the speed without speculation nothing is proven, even where the noise leaves room for more."""
LOST = 0.02
"""So much of the acceptance may be lost over an off spell, beside what so few drafts cannot know."""
MORE_SWITCHES = 2
"""So many times the switches that a ramp needs are no flapping: one there and back at a load between two thresholds."""


class Proven(msgspec.Struct, frozen=True, kw_only=True):
    """What the proof found. `over_off`, `over_best`: the scheduled server over off, and over the best arm beside it, by load.

    `against`: what is not as it should be, a line each; none where the schedule is proven.
    """

    over_off: dict[int, Interval] = {}
    over_best: dict[int, Interval] = {}
    left_on: dict[int, Interval] = {}
    ramp: tuple[Held, ...] = ()
    against: tuple[str, ...] = ()


def loads_to_prove(fit: Fit) -> tuple[int, ...]:
    """Return the lowest load, those on both sides of each threshold, and the highest."""
    loads = sorted(fit.chosen)
    around = {load for pair in pairwise(loads) if fit.chosen[pair[0]] != fit.chosen[pair[1]] for load in pair}
    return tuple(sorted({loads[0], loads[-1], *around}))


def proven(fit: Fit, rows: Sequence[Row], ramp: Sequence[Held], k_of: Mapping[str, int], seed: int = 1) -> Proven:
    """Hold the scheduled server to the arms beside it, and its ramp to its schedule."""
    first = next((arm for arm, k in k_of.items() if k == fit.tiers[0].k), OFF)
    over_off: dict[int, Interval] = {}
    over_best: dict[int, Interval] = {}
    left_on: dict[int, Interval] = {}
    against: list[str] = []
    for load in loads_to_prove(fit):
        arms = {arm: some for arm in (*k_of, SCHEDULED) if (some := _rounds(rows, arm, load))}
        if SCHEDULED not in arms:
            against.append(f"at {load} at once the scheduled server was not measured{_why(rows, load)}")
            continue
        best = max(
            (arm for arm in arms if arm != SCHEDULED), key=lambda arm: speed(list(arms[arm].values())), default=None
        )
        for found, ours, theirs in ((over_off, SCHEDULED, OFF), (over_best, SCHEDULED, best), (left_on, first, OFF)):
            held = _over(arms.get(ours), arms.get(theirs or ""), seed)
            if held is not None:
                found[load] = held
        against += _slower(load, fit.chosen[load], over_off.get(load))
    return Proven(
        over_off=over_off,
        over_best=over_best,
        left_on=left_on,
        ramp=tuple(ramp),
        against=(*against, *_of_ramp(fit, ramp)),
    )


def words_of_proof(fit: Fit, found: Proven) -> str:
    """Return the proof in words."""
    ends = sorted({min(found.over_off), max(found.over_off)}) if found.over_off else []
    gains = ", ".join(f"{times(found.over_off[load].value)} at {load}" for load in ends)
    left = (
        f", against {times(found.left_on[ends[-1]].value)} for speculation left on"
        if ends and ends[-1] in found.left_on
        else ""
    )
    text = f"{'proven' if not found.against else 'NOT proven'}: {thresholds(fit.tiers)}: {gains or 'nothing was measured'}{left}"
    if found.ramp:
        last = found.ramp[-1]
        text += f"; {last.switches} switches on a ramp to {max(one.load for one in found.ramp)} and back"
        if last.before and last.after and min(last.drafts) >= LEAST_DRAFTS:
            text += f", acceptance {last.before:.2f} before it was off and {last.after:.2f} after (tokens a step)"
    return "\n".join([text, *(f"  {line}" for line in found.against)])


def _rounds(rows: Sequence[Row], arm: str, load: int) -> dict[int, tuple[float, ...]]:
    return {row.round: row.blocks for row in rows if row.arm == arm and row.point.value == load and row.measured}


def _over(
    ours: Mapping[int, Sequence[float]] | None, theirs: Mapping[int, Sequence[float]] | None, seed: int
) -> Interval | None:
    both = sorted(ours.keys() & theirs.keys()) if ours and theirs else []
    if not both or ours is None or theirs is None:
        return None
    try:
        return ratio([ours[number] for number in both], [theirs[number] for number in both], seed)
    except ValueError:
        return None


def _why(rows: Sequence[Row], load: int) -> str:
    lost = (
        row.cause.text for row in rows if row.arm == SCHEDULED and row.point.value == load and row.cause is not None
    )
    return f": {text}" if (text := next(lost, "")) else ""


def _slower(load: int, chosen: int, over_off: Interval | None) -> list[str]:
    """Say where the scheduled server is slower than without speculation: surely, or by more than nothing and not surely not."""
    meant = answer(over_off) if over_off is not None else "even"
    if over_off is None or not (meant == "slower" or (meant == "inconclusive" and over_off.value < WORTH)):
        return []
    what = "off is best there" if not chosen else f"k {chosen} should be faster there"
    return [f"at {load} at once it is {times(over_off.value)} of the server without speculation ({what})"]


def _of_ramp(fit: Fit, ramp: Sequence[Held]) -> list[str]:
    """Say what was wrong on the ramp: a k that is not the schedule's, flapping, acceptance that did not come back."""
    found = []
    for one in ramp:
        wanted = allowed(fit.tiers, one.load)
        if one.k not in wanted:
            told = "nothing told which k was in force" if one.k is None else f"k {one.k} was in force"
            way = "up" if one.up else "down"
            found.append(f"at {one.load} at once on the way {way} {told}, not {' or '.join(map(str, sorted(wanted)))}")
    if not ramp:
        return ["the ramp was not run"]
    needed, last = 2 * (len(fit.tiers) - 1), ramp[-1]
    if last.switches > MORE_SWITCHES * needed:
        found.append(f"it flaps: {last.switches} switches on a ramp that needs {needed}")
    if last.before and last.after and min(last.drafts) >= LEAST_DRAFTS:
        share, unsure = last.after / last.before, 2 / sqrt(min(last.drafts))
        if share < 1 - LOST - unsure:
            found.append(f"acceptance is {last.after:.2f} tokens a step after the off spell, and was {last.before:.2f}")
    return found
