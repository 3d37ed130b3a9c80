"""Prove a schedule: start the server with it beside the arms that it was made of, and put a ramp of loads on one life of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from vigil.bench.alike import Alike
from vigil.bench.client import client_of, place_of
from vigil.bench.folder import write
from vigil.bench.settings import Point
from vigil.bench.target import Wanted, look
from vigil.bench.work import Work
from vigil.cli import benching
from vigil.cli.comparing import Started, compared
from vigil.cli.lifting import lifted
from vigil.cli.saying import mention
from vigil.cli.speculating import speculating
from vigil.errors import MeasureError, VigilError
from vigil.hosts import call, reach_of
from vigil.plan import Plan
from vigil.screen import plain
from vigil.speculation.fit import Fit, Tier
from vigil.speculation.proof import SCHEDULED, Proven, loads_to_prove, proven
from vigil.speculation.ramp import PATIENCE_STEPS, Held, Server, allowed, ramp

RAMP = "ramp.json"


def prove(
    found: Fit, schedule: Path, asked: benching.Asked, started: Started, arm: str, k_of: Mapping[str, int]
) -> Proven:
    """Measure what is missing of the proof of a schedule; `arm` is the one whose k is its first."""
    plan = msgspec.structs.replace(speculating(started.plans[arm], str(schedule)), name=f"tune-{SCHEDULED}")
    plans = {**started.plans, SCHEDULED: plan}
    digest = next(one.partition("=")[2] for one in plan.expect if one.startswith("speculate="))
    points = tuple(Point(value=load) for load in loads_to_prove(found))
    folder = schedule.parent / f"proof-{digest}"
    mention(f"proving it at {', '.join(f'{one.value:g}' for one in points)} at once, and on a ramp")
    results, _ = compared(
        msgspec.structs.replace(asked, points=points),
        Alike(commands={name: one.command for name, one in plans.items()}),
        msgspec.structs.replace(started, plans=plans, settles={SCHEDULED: Waiting(plan, found.tiers)}),
        folder,
    )
    held = kept(folder / RAMP)
    if held is None:
        try:
            held = benching.run(lambda: _ramp(plan, found, asked, started.at))
            write(folder / RAMP, held)
        except MeasureError as error:
            mention(f"the ramp: {plain(str(error), 300)}")
            held = []
    return proven(found, results.rows, held, k_of, asked.settings.seed)


def kept(path: Path) -> list[Held] | None:
    """Return the ramp of an earlier run; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Held])
    except (OSError, msgspec.DecodeError):
        return None


async def _ramp(plan: Plan, found: Fit, asked: benching.Asked, at: str | None) -> list[Held]:
    """Bring the scheduled server up once, and ramp."""
    async with lifted(plan, lambda _: None, at) as up:
        if up.url is None:
            cause = await up.cause()
            raise MeasureError(f"the scheduled server did not come up: {cause.text if cause else 'why is not known'}")
        place = place_of(up.url, up.key)
        wanted = Wanted(settings=asked.settings, engine=up.engine, model=up.model, prompts=asked.prompts)
        async with client_of(place, asked.settings.limits) as client:
            target = await look(client, up.url, wanted)
        settings = msgspec.structs.replace(
            asked.settings, requests=None, ignore_eos=asked.settings.ignore_eos and target.ignore_eos
        )
        work = Work(settings, target.model, target.words, asked.prompts)

        async def ask() -> dict[str, Any] | None:
            return await account_of(plan, up.name)

        def tell(text: str) -> None:
            mention(f"ramp: {text}")

        server = Server(place=place, work=work, ask=ask)
        return await ramp(server, loads_to_prove(found), found.tiers, tell)


class Waiting:
    """Whether a scheduled server has come to a k that it may have at a load, or was given the steps of its longest rest."""

    def __init__(self, plan: Plan, tiers: Sequence[Tier]) -> None:
        self._plan, self._tiers = plan, tiers
        self._at: Point | None = None
        self._first = 0

    async def __call__(self, up: Any, point: Point) -> bool:
        """Return it; True, too, of a server that says nothing: its measurement is as it is."""
        account = await account_of(self._plan, up.name)
        if account is None or account.get("k") in allowed(self._tiers, int(point.value)):
            return True
        steps = int(account.get("steps") or 0)
        if point != self._at:
            self._at, self._first = point, steps
        return steps - self._first > PATIENCE_STEPS


async def account_of(plan: Plan, name: str) -> dict[str, Any] | None:
    """Return the account of the process that decides; None where none tells."""
    try:
        with anyio.fail_after(10.0):
            answer = await call(reach_of(plan.on, plan.reach), "switch", name=name, do="status")
    except (VigilError, TimeoutError):
        return None
    told = (one for one in answer.get("processes") or () if isinstance(one, dict) and one.get("deciding"))
    return next(told, None)
