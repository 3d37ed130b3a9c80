"""Put a ramp of loads, up and down again, on one life of a server that switches, and note what came into force at each."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from vigil.bench.client import Place, client_of
from vigil.bench.settings import Point
from vigil.bench.sweep import INDEX_STEP, load_of
from vigil.bench.work import Work
from vigil.speculation.fit import Tier

LOOK_S = 0.5
LONGEST_S = 600.0
LEAST_DRAFTS = 200
PATIENCE_STEPS = 3200
"""Decode steps that a tier may rest at most (vigil-engine's most_rest_steps) and its dwell: later it never changes."""
Ask = Callable[[], Awaitable[Mapping[str, Any] | None]]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One load of the ramp, after it settled, on the way `up` or down. `k` None: nothing was told.

    `switches`: in all since the start of the server. `before`, `after`: tokens a step around the last spell without speculation,
    and `drafts` on which the two rest.
    """

    load: int
    up: bool
    k: int | None = None
    switches: int = 0
    took_s: float = 0.0
    before: float | None = None
    after: float | None = None
    drafts: tuple[int, int] = (0, 0)


def allowed(tiers: Sequence[Tier], load: int) -> set[int]:
    """Return each k that may be in force at a load: two between `below` and `above`."""
    up = [one.k for one in tiers if one.above is None or load > one.above]
    down = [one.k for one in tiers if one.below is None or load >= one.below]
    return {up[-1], down[-1], *(one.k for one in tiers[len(up) : len(down)])}


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server answers, what it is asked, and how its account is had."""

    place: Place
    work: Work
    ask: Ask


async def ramp(server: Server, loads: Sequence[int], tiers: Sequence[Tier], tell: Callable[[str], None]) -> list[Held]:
    """Hold each load, rising and then falling, until a k that it may have is in force and the time of the settings is over."""
    rising = sorted(loads)
    found = []
    async with client_of(server.place, server.work.settings.limits) as client:
        for number, load in enumerate([*rising, *rising[-2::-1]]):
            tell(f"{load} at once")
            put = load_of(client, server.work, Point(value=load), (1000 + number) * INDEX_STEP)
            began = Held(load=load, up=number < len(rising))
            task = asyncio.create_task(put.run())
            try:
                held = await _settled(server, began, allowed(tiers, load), task)
                put.end()
                await task
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            found.append(held)
    return found


async def _settled(server: Server, began: Held, wanted: set[int], task: "asyncio.Task[None]") -> Held:
    """Watch a load until it settled, or was given the steps that the longest rest takes."""
    began_s, first, least_s = time.perf_counter(), None, server.work.settings.seconds
    while True:
        await asyncio.sleep(LOOK_S)
        account = await server.ask()
        took_s = time.perf_counter() - began_s
        held = held_of(began, account or {}, took_s)
        steps = _count((account or {}).get("steps"))
        first = steps if first is None else first
        few = held.before is not None and held.drafts[1] < LEAST_DRAFTS  # what they say of acceptance
        over = took_s >= least_s and ((held.k in wanted and not few) or steps - first > PATIENCE_STEPS)
        if over or took_s > LONGEST_S or task.done() or (account is None and took_s > least_s):
            return held


def held_of(began: Held, account: Mapping[str, Any], took_s: float) -> Held:
    """Return what an account says of a load."""
    k = account.get("k")
    spells = [one for one in account.get("spells") or () if isinstance(one, dict)]
    now = {"k": k, **((account.get("acceptance") or {}).get("spell") or {})}
    before, after = _around_off([*spells, now])
    return msgspec.structs.replace(
        began,
        k=k if isinstance(k, int) else None,
        switches=_count(account.get("switches")),
        took_s=took_s,
        before=_length(before),
        after=_length(after),
        drafts=(_count(before.get("drafts")), _count(after.get("drafts"))),
    )


def _around_off(spells: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the spells of one k before and after the last one without speculation; nothing where there is none."""
    for at in range(len(spells) - 2, 0, -1):
        before, off, after = spells[at - 1], spells[at], spells[at + 1]
        if off.get("k") == 0 and before.get("k") and before.get("k") == after.get("k"):
            return before, after
    return {}, {}


def _length(spell: Mapping[str, Any]) -> float | None:
    value = spell.get("length")
    return float(value) if isinstance(value, int | float) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
