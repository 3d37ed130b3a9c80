"""Compare arms: each is brought up, measured at every load and stopped, round after round; what is finished stays finished.

How an arm is brought up is not known here: `lift` does it, and says what became of it.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

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


Lift = Callable[[Arm], AbstractAsyncContextManager[Lifted]]


class Comparing:
    """One comparison. Invariant: a row that is kept is not measured again, unless it tells of a failure from an earlier run."""

    def __init__(self, results: Results, lift: Lift, prompts: tuple[Prompt, ...] | None) -> None:
        self.results, self.lift, self.prompts = results, lift, prompts
        self.settings = results.meta.settings
        self.progress = Progress(
            len(results.meta.arms) * len(results.meta.points) * self.settings.repeats, self.settings
        )
        self.lost: dict[str, Cause] = {}
        self.failed: set[str] = set()
        finished = [row for row in results.rows if row.cause is None]
        results.rows[:] = finished
        self.progress.done = len(finished)
        self.progress.waiting = [
            point
            for arm in results.meta.arms
            for number in range(self.settings.repeats)
            for point in self.missing(arm.name, number)
        ]

    def missing(self, arm: str, number: int) -> list[Point]:
        """Return the loads of a round that are not measured yet."""
        kept = {row.key for row in self.results.rows}
        return [point for point in self.results.meta.points if (arm, point, number) not in kept]

    async def run(self) -> None:
        """Measure all that is missing; the other way round in every second round, so that a drift is no answer."""
        for number in range(self.settings.repeats):
            for arm in turn(self.results.meta.arms, number):
                if self.missing(arm.name, number) and arm.name not in self.lost:
                    await self._one(arm, number)

    async def _one(self, arm: Arm, number: int) -> None:
        """Bring an arm up, measure it, stop it. An arm that does not come up is not tried again."""
        self.progress.doing = f"{arm.name}  starting  round {number + 1} of {self.settings.repeats}"
        cause: Cause | None = None
        async with self.lift(arm) as lifted:
            if lifted.url is None:
                self.lost[arm.name] = await lifted.cause() or Cause(verdict="failed", text="it did not come up")
            else:
                cause = await self._measured(arm, number, lifted, lifted.url)
            self.progress.doing = f"{arm.name}  stopping"
        cause = self.lost.get(arm.name, cause)
        if cause is not None:
            self._give_up(arm, number, cause)

    async def _measured(self, arm: Arm, number: int, lifted: Lifted, url: str) -> Cause | None:
        """Measure an arm that is up; return why that ended early."""
        place = place_of(url, lifted.key)
        wanted = Wanted(settings=self.settings, engine=lifted.engine, model=lifted.model, prompts=self.prompts)
        try:
            async with client_of(place, self.settings.limits) as client:
                target = await look(client, url, wanted)
                facts = await server_facts(client, target)
        except UsageError:
            raise
        except (MeasureError, UnreachableError) as error:  # a first request may be what a server dies of
            return await lifted.cause() or Cause(verdict="failed", text=str(error))
        kept = {"target": msgspec.to_builtins(target), "settings": facts, "command": arm.command}
        self.results.note_server(arm.name, kept)
        bench = Bench(place, target, self.results, self.progress, self.prompts)
        cause = await bench.round(arm.name, number)
        return None if cause is None else await lifted.cause() or cause

    def _give_up(self, arm: Arm, number: int, cause: Cause) -> None:
        """Keep a row with the cause for each load that the arm did not come to."""
        self.failed.add(arm.name)
        for point in self.missing(arm.name, number):
            row = Row(arm=arm.name, point=point, round=number, began=time.time(), lasted_s=0.0, cause=cause)
            self.results.add(row)
            self.progress.finish(row)
        if arm.name in self.lost:
            self.progress.total -= sum(
                len(self.missing(arm.name, later)) for later in range(number + 1, self.settings.repeats)
            )


def turn(arms: Sequence[Arm], number: int) -> list[Arm]:
    """Return the arms in the order of a round."""
    return list(reversed(arms)) if number % 2 else list(arms)
