"""Whether speculation is switched as asked (`--speculate`): what vigil-engine told of itself in the server's processes. Pure."""

from collections.abc import Iterable

from vigil.fact_parts import Switching
from vigil.facts import Attested
from vigil.verdict.who import named

MOST_LINES = 3
NOT_LOADED = (
    "no process says that it switches speculation, so that vigil-engine was not loaded "
    "(VLLM_PLUGINS without it? PYTHONPATH set anew?)"
)


def judge_switching(schedule: str, seen: Attested) -> tuple[bool | None, str]:
    """Judge whether every process that decides does so by this schedule, and nothing was refused."""
    told = seen.switching
    if not told:
        return (None, f"its processes could not be asked: {seen.error}") if seen.error else (False, NOT_LOADED)
    for why in ("refused", "errors"):
        hurt = [one for one in told if getattr(one, why)]
        if hurt:
            lines = list(dict.fromkeys(line for one in hurt for line in getattr(one, why)))
            more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
            verb = "left the engine as it was" if why == "refused" else "gave up"
            return False, f"vigil-engine in {_who(hurt, seen)} {verb}: {'; '.join(lines[:MOST_LINES])}{more}"
    others = [one for one in told if not one.deciding or one.schedule != schedule]
    if others:
        return False, f"{_who(others, seen)} decides by {others[0].schedule or 'nothing'}"
    now = "" if told[0].k is None else f", k {told[0].k} now"
    return True, f"decided in {_who(told, seen)}, mode {told[0].mode}{now}"


def _who(told: Iterable[Switching], seen: Attested) -> str:
    pids = {one.pid for one in told}
    known = [one for one in seen.processes if one.pid in pids]
    alone = sorted(pids - {one.pid for one in known})
    names = [named(known)] if known else []
    return ", ".join([*names, *(f"pid {pid}" for pid in alone[:MOST_LINES])])
