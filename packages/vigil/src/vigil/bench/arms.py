"""Compare arms: each is brought up, measured at every load and stopped, round after round; what is finished stays finished.

How an arm is brought up is not known here: `lift` does it, and says what became of it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Protocol

import msgspec

from vigil.bench.client import client_of, place_of
from vigil.bench.folder import Arm, Results
from vigil.bench.prompts import Prompt
from vigil.bench.provenance import server_facts
from vigil.bench.row import Cause, Row
from vigil.bench.settings import Point
from vigil.bench.sweep import Bench, Progress
from vigil.bench.target import Wanted, look
from vigil.errors import MeasureError, UnreachableError, UsageError


class Lifted(Protocol):
    """An arm that was brought up, or was not: then `url` is None and `cause` tells why."""

    url: str | None
    engine: str | None
    model: str | None
    key: str | None

    async def cause(self) -> Cause | None:
        """Return what became of it, waiting a while for the answer; None where it still serves."""

    async def ran_on(self) -> dict[str, Any]:
        """Return what it runs on and with: machine, program, packages, models, flags in force."""


Settles = Mapping[str, Callable[["Lifted", Point], Awaitable[bool]]]
"""By the name of an arm: whether a server of it is where it is to be measured at a load."""
Lift = Callable[[Arm, Callable[[str], None]], AbstractAsyncContextManager[Lifted]]
"""Brings an arm up, tells meanwhile in a word how far it is, and stops it at the end."""


class Comparing:
    """One comparison. Invariant: a row that is kept is not measured again, unless it tells of a failure from an earlier run.

    `lost`: arms that did not come up; `deadly`: loads at which an arm died. Neither is tried again: each try costs a start.
    """

    def __init__(
        self, results: Results, lift: Lift, prompts: tuple[Prompt, ...] | None, settles: Settles | None = None
    ) -> None:
        self.results, self.lift, self.prompts, self.settles = results, lift, prompts, settles or {}
        self.settings = results.meta.settings
        self.lost: dict[str, Cause] = {}
        self.deadly: dict[tuple[str, Point], Cause] = {}
        self.failed: set[str] = set()
        meta = results.meta
        self.progress = Progress(list(meta.points) * len(meta.arms) * self.settings.repeats, self.settings)
        results.rows[:] = [row for row in results.rows if row.cause is None]
        for row in results.rows:
            self.progress.finish(row)

    def missing(self, arm: str, number: int) -> list[Point]:
        """Return the loads of a round that are not measured yet."""
        kept = {row.key for row in self.results.rows}
        return [point for point in self.results.meta.points if (arm, point, number) not in kept]

    async def run(self) -> None:
        """Measure all that is missing; the other way round in every second round, so that a drift is no answer."""
        for number in range(self.settings.repeats):
            for arm in turn(self.results.meta.arms, number):
                self._spare(arm, number)
                while self.missing(arm.name, number) and arm.name not in self.lost:
                    await self._one(arm, number)

    async def _one(self, arm: Arm, number: int) -> None:
        """Bring an arm up, measure what is missing of a round, stop it; keep a row with the cause where it died."""
        began_s, serving_s = time.perf_counter(), 0.0
        self.progress.starts = self._starts_left()
        self.progress.doing = f"{arm.name}  starting  round {number + 1} of {self.settings.repeats}"
        cause: Cause | None = None
        point: Point | None = None
        async with self.lift(arm, self._tell) as lifted:
            self.progress.starts -= 1
            self._tell("")
            if lifted.url is None:
                cause = await lifted.cause() or Cause(verdict="failed", text="it did not come up")
            else:
                since_s = time.perf_counter()
                cause, point = await self._measured(arm, number, lifted, lifted.url)
                serving_s = time.perf_counter() - since_s
            self.progress.doing = f"{arm.name}  stopping"
        self.progress.started(time.perf_counter() - began_s - serving_s)
        if cause is not None:
            self._note(arm, number, point, cause)

    async def _measured(self, arm: Arm, number: int, lifted: Lifted, url: str) -> tuple[Cause | None, Point | None]:
        """Measure an arm that is up; return why that ended early, and at which load."""
        place = place_of(url, lifted.key)
        wanted = Wanted(settings=self.settings, engine=lifted.engine, model=lifted.model, prompts=self.prompts)
        try:
            async with client_of(place, self.settings.limits) as client:
                target = await look(client, url, wanted)
                facts = await server_facts(client, target)
        except UsageError:
            raise
        except (MeasureError, UnreachableError) as error:  # a first request may be what a server dies of
            return await lifted.cause() or Cause(verdict="failed", text=str(error)), None
        kept = {"target": msgspec.to_builtins(target), "settings": facts, "command": arm.command}
        self.results.note_server(arm.name, {**kept, "ran_on": await lifted.ran_on()})
        settles = self.settles.get(arm.name)
        settled = partial(settles, lifted) if settles is not None else None
        bench = Bench(place, target, self.results, self.progress, self.prompts, settled)
        cause = await bench.round(arm.name, number)
        return (None if cause is None else await lifted.cause() or cause), bench.point

    def _note(self, arm: Arm, number: int, point: Point | None, cause: Cause) -> None:
        """Keep a row with the cause: for the load at which the arm died, or for all where it did not come to any."""
        self.failed.add(arm.name)
        if point is not None:
            self.deadly[arm.name, point] = cause
            self._spare(arm, number)
            return
        self.lost[arm.name] = cause
        for one in self.missing(arm.name, number):
            self._keep(arm, number, one, cause)
        for later in range(number + 1, self.settings.repeats):
            self.progress.drop(self.missing(arm.name, later))

    def _spare(self, arm: Arm, number: int) -> None:
        """Keep a row with the cause for each load at which the arm has died."""
        for point in self.missing(arm.name, number):
            if (cause := self.deadly.get((arm.name, point))) is not None:
                self._keep(arm, number, point, cause)

    def _keep(self, arm: Arm, number: int, point: Point, cause: Cause) -> None:
        row = Row(arm=arm.name, point=point, round=number, began=time.time(), lasted_s=0.0, cause=cause)
        self.results.add(row)
        self.progress.finish(row)

    def _starts_left(self) -> int:
        """Return how many starts there will be, the next one included, where nothing dies."""
        arms = [arm.name for arm in self.results.meta.arms if arm.name not in self.lost]
        return sum(bool(self.missing(arm, number)) for arm in arms for number in range(self.settings.repeats))

    def _tell(self, detail: str) -> None:
        self.progress.detail = detail


def turn(arms: Sequence[Arm], number: int) -> list[Arm]:
    """Return the arms in the order of a round."""
    return list(reversed(arms)) if number % 2 else list(arms)
