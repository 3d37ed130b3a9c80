"""What a fit amounts to: "off above 40, back on below 28: 1.9x at 1, 1.00x at 128, against 0.62x for k 3 left on". Pure."""

from collections.abc import Sequence
from itertools import groupby, pairwise

from vigil.speculation.fit import Fit, Tier

CLEAR = 1.1  # from here on two digits say enough


def words_of(fit: Fit) -> str:
    """Return the answer of a fit as sentences."""
    lowest, highest = min(fit.chosen), max(fit.chosen)
    if fit.kind == "inconclusive":
        text = f"no answer: from {lowest} to {highest} at once the noise hides whether speculation pays"
    elif fit.kind == "never":
        text = f"start it without speculation: that pays at none of {lowest} to {highest} at once ({_best_fixed(fit)})"
    elif fit.kind == "always":
        k = fit.tiers[0].k
        text = f"start it with k {k}, and do not switch: {_gains(fit)}, and surely slower than without at no load"
    else:
        text = f"{thresholds(fit.tiers)}: {_gains(fit)}{_left_on(fit)}"
    if fit.open:
        text += f"\nnot sure at {_listed(fit.open)} at once: more --seconds or --repeats there would tell"
    return text


def thresholds(tiers: Sequence[Tier]) -> str:
    """Return where the tiers change."""
    parts = []
    for before, tier in pairwise(tiers):
        what, back = ("off", "back on") if not tier.k else (f"k {tier.k}", f"back to k {before.k}")
        parts.append(f"{what} above {tier.above}, {back} below {tier.below}")
    return "; ".join(parts)


def times(value: float) -> str:
    """Return a ratio as it is said."""
    return f"{value:.2f}x" if value < CLEAR else f"{value:.2g}x"


def turns(fit: Fit) -> str:
    """Return which of on and off to start at which load, for an engine that cannot switch while it runs."""
    runs = [
        (on, [load for load, _ in some]) for on, some in groupby(sorted(fit.chosen.items()), key=lambda one: one[1] > 0)
    ]
    parts = [f"{'with' if on else 'without'} speculation {_span(some)}" for on, some in runs]
    turn = "" if len(fit.tiers) == 1 else f"; it turns at about {fit.tiers[1].above} running requests"
    return f"start it {', '.join(parts)} at once ({_fixed_ends(fit)}){turn}"


def _span(some: Sequence[int]) -> str:
    return f"at {some[0]}" if len(some) == 1 else f"at {some[0]} to {some[-1]}"


def _gains(fit: Fit) -> str:
    ends = sorted({min(fit.gain), max(fit.gain)})
    return ", ".join(f"{times(fit.gain[load].value)} at {load}" for load in ends)


def _left_on(fit: Fit) -> str:
    highest = max(fit.chosen)
    if highest not in fit.fixed or fit.chosen[highest] == fit.tiers[0].k:
        return ""
    return f", against {times(fit.fixed[highest].value)} for k {fit.tiers[0].k} left on"


def _fixed_ends(fit: Fit) -> str:
    ends = sorted({min(fit.fixed), max(fit.fixed)}) if fit.fixed else []
    return ", ".join(f"{times(fit.fixed[load].value)} at {load} with it" for load in ends)


def _best_fixed(fit: Fit) -> str:
    """Return the best that a fixed k does against off."""
    if not fit.best:
        return "nothing was measured with it"
    load, found = max(fit.best.items(), key=lambda one: one[1].value)
    return f"{times(found.value)} at {load} is the best it does"


def _listed(loads: Sequence[int]) -> str:
    return ", ".join(str(load) for load in loads)
