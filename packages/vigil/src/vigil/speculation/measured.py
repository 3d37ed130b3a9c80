"""What a schedule was measured on, and what each arm cost there: kept in it, so that production can be held to it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Any

from vigil.bench.row import Row
from vigil.speculation.arms import OFF
from vigil.speculation.fit import Fit, Load


def loads_of_rows(rows: Sequence[Row], k_of: Mapping[str, int]) -> list[Load]:
    """Return the speeds of each load by k, round by round; a round that is missing stays empty."""
    repeats = range(1 + max((row.round for row in rows), default=0))
    found = []
    for load in sorted({row.point.value for row in rows}):
        parts = {(row.arm, row.round): row.blocks for row in rows if row.point.value == load and row.measured}
        speeds = {k: [parts.get((arm, number), ()) for number in repeats] for arm, k in k_of.items()}
        found.append(Load(load=int(load), speeds={k: some for k, some in speeds.items() if any(map(any, some))}))
    return found


def steps_of(rows: Sequence[Row], k_of: Mapping[str, int]) -> dict[str, dict[str, dict[str, float]]]:
    """Return by k and load the seconds of a step, its tokens for each request, and the tokens a second; medians over rounds."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for arm, k in k_of.items():
        for load in sorted({row.point.value for row in rows}):
            some = [row for row in rows if row.arm == arm and row.point.value == load and row.measured]
            told = [one.told.accept_length for one in some if one.told.accept_length]
            length = 1.0 if arm == OFF else (median(told) if told else None)
            if some:
                speed = median(fmean(one.blocks) for one in some)
                costs = {} if length is None else {"step_s": load * length / speed, "accept_length": length}
                found.setdefault(str(k), {})[f"{load:g}"] = {"output_per_s": speed, **costs}
    return found


def measured_on(
    servers: Mapping[str, Mapping[str, Any]], rows: Sequence[Row], k_of: Mapping[str, int], command: Sequence[str]
) -> dict[str, Any]:
    """Return what is kept beside the tiers. `command` is without its secrets."""
    arm = next((name for name, k in k_of.items() if k and name in servers), OFF)
    facts = servers.get(arm, {})
    return {
        **identity(facts),
        "date": datetime.fromtimestamp(max((row.began for row in rows), default=0.0), UTC).strftime("%Y-%m-%d"),
        "command": list(command),
        "steps": steps_of(rows, k_of),
    }


def identity(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server's facts say of engine, machine, target and draft."""
    target, ran_on = facts.get("target") or {}, facts.get("ran_on") or {}
    engine = target.get("engine")
    packages = ran_on.get("packages") or {}
    models = {one.get("what"): _print_of(one) for one in ran_on.get("models") or ()}
    return {
        "engine": engine,
        "version": packages.get(engine) or (facts.get("settings") or {}).get("version"),
        "gpu": sorted(str(one.get("name")) for one in ran_on.get("gpus") or ()),
        "driver": (ran_on.get("machine") or {}).get("driver"),
        "target": models.get("model"),
        "draft": next((found for what, found in models.items() if _is_draft(what)), None),
    }


def _is_draft(what: object) -> bool:
    """Say whether a flag names a draft: what else names a model is the model itself, and a tokenizer."""
    return what not in {None, "model"} and "tokenizer" not in str(what)


def _print_of(model: Mapping[str, Any]) -> dict[str, Any]:
    return {name: model.get(name) for name in ("given", "commit", "weights")}


def schedule_of(fit: Fit, engine: str, on: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schedule's file of a fit; what it does not name of the policy are vigil-engine's defaults."""
    tiers = [
        {"k": one.k} if one.above is None else {"k": one.k, "above": one.above, "below": one.below} for one in fit.tiers
    ]
    return {"schema": 1, "engine": engine, "k": fit.tiers[0].k, "tiers": tiers, "measured_on": dict(on)}


_NAMED = {"engine": "engine", "version": "version of the engine", "gpu": "GPU", "target": "model", "draft": "draft"}


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words what differs between what a schedule was measured on and a start, as far as both are known."""
    found = []
    for name, title in _NAMED.items():
        before, after = was.get(name), now.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            key = next((key for key in ("weights", "commit", "given") if before.get(key) and after.get(key)), None)
            if key is not None and before[key] != after[key]:
                what = {"weights": "; its weights differ", "commit": "; its commit differs"}.get(key, "")
                found.append(f"{title} {after.get('given')} (measured on {before.get('given')}{what})")
        elif before and after and before != after:
            found.append(f"{title} {_shown(after)} (measured on {_shown(before)})")
    return found


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
