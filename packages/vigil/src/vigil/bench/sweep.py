"""Measure one server at every load, round after round, and keep each row."""

import asyncio
import gc
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import fmean

import msgspec

from vigil.bench.client import Client, Place, client_of
from vigil.bench.crew import Crew
from vigil.bench.drive import Drive
from vigil.bench.folder import Results
from vigil.bench.gauges import Gauges, watch
from vigil.bench.load import Load
from vigil.bench.messages import Job
from vigil.bench.prompts import Prompt
from vigil.bench.reply import Failure
from vigil.bench.row import Cause, Row
from vigil.bench.settings import Point, Settings
from vigil.bench.summary import Seen, row_of
from vigil.bench.target import Target
from vigil.bench.work import Work

Settled = Callable[[Point], Awaitable[bool]]
"""Says whether the server is where it is to be measured at a load; asked again and again while the load is put on."""
LOOK_S = 0.5
INDEX_STEP = 1_000_000  # numbers of prompts that a measurement has for itself
GONE = (Failure.UNREACHABLE, Failure.DROPPED)
OVERHEAD = 1.5
OVERHEAD_S = 3.0


class Progress:
    """Where a measurement is; whoever draws it looks at this.

    `doing` says what goes on, `detail` how it goes; `waiting` are the loads still to be measured, `starts` how many servers have
    still to be started.
    """

    def __init__(self, waiting: Sequence[Point], settings: Settings) -> None:
        self.waiting, self.settings = list(waiting), settings
        self.done = 0
        self.doing = self.detail = ""
        self.drive: Drive | None = None
        self.starts = 0
        self._lasted: dict[Point, list[float]] = {}
        self._starts_took: list[float] = []

    @property
    def total(self) -> int:
        """How many measurements there are, with those that are done."""
        return self.done + len(self.waiting)

    def finish(self, row: Row) -> None:
        """Take note of a row, also of one that an earlier run finished."""
        self.done += 1
        self.drop([row.point])
        if row.cause is None:
            self._lasted.setdefault(row.point, []).append(row.lasted_s)

    def drop(self, points: Sequence[Point]) -> None:
        """Wait no longer for some measurements."""
        for point in points:
            if point in self.waiting:
                self.waiting.remove(point)

    def started(self, took_s: float) -> None:
        """Take note of how long a start took, with its stop."""
        self._starts_took.append(took_s)

    @property
    def unknown_starts(self) -> int:
        """How many starts are left of which `left_s` holds nothing, since none was seen yet."""
        return 0 if self._starts_took else self.starts

    @property
    def left_s(self) -> float:
        """The time left in seconds, by how long the same loads and the starts took before."""
        known = [one for some in self._lasted.values() for one in some]
        usual_s = sum(known) / len(known) if known else self.settings.seconds * OVERHEAD + OVERHEAD_S
        expected = [min(self._lasted.get(point, [usual_s])) for point in self.waiting]
        starts_s = self.starts * fmean(self._starts_took) if self._starts_took else 0.0
        return max(0.0, sum(expected) + starts_s - (self.drive.elapsed_s if self.drive else 0.0))


def order(points: Sequence[Point], number: int, seed: int) -> list[Point]:
    """Return the loads in the order of a round: another one each time, so that a drift is no trend."""
    found = list(points)
    random.Random(f"{seed}/{number}").shuffle(found)  # noqa: S311 - no secret
    return found


class Bench:
    """One server that is measured for one arm. Invariant: every row that was finished is kept in the results.

    `point`: the load that is measured, or was last; None before the first one. `settled`: where not every state of the server is
    to be measured.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a measurement is made of
        self,
        place: Place,
        target: Target,
        results: Results,
        progress: Progress,
        prompts: tuple[Prompt, ...] | None,
        settled: Settled | None = None,
    ) -> None:
        self.place, self.target, self.results, self.progress = place, target, results, progress
        self.prompts, self.settled = prompts, settled
        self.point: Point | None = None
        self.settings = msgspec.structs.replace(results.meta.settings, ignore_eos=_ignores(results, target))

    async def round(self, arm: str, number: int) -> Cause | None:
        """Measure what is not there yet of a round; return why it ended early, where the server failed."""
        kept = {one.key for one in self.results.rows}
        for point in order(self.results.meta.points, number, self.settings.seed):
            if (arm, point, number) in kept:
                continue
            self.point = point
            self.progress.doing = f"{arm}  {point.text}  round {number + 1} of {self.settings.repeats}"
            row, trouble = await self.measure(arm, point, number)
            if trouble is not None:  # what was cut short is no measurement
                return Cause(verdict="failed", text=trouble)
            self.results.add(row)
            self.progress.finish(row)
        return None

    async def measure(self, arm: str, point: Point, number: int) -> tuple[Row, str | None]:
        """Measure one load; return its row, and why it ended early."""
        work = Work(self.settings, self.target.model, self.target.words, self.prompts)
        place_in_order = sorted(self.results.meta.points).index(point)
        first = (number * len(self.results.meta.points) + place_in_order) * INDEX_STEP
        began, looked_s = time.time(), time.perf_counter()
        looks: list[Gauges] = []
        async with client_of(self.place, self.settings.limits) as client:
            load = load_of(client, work, point, first)
            drive = self.progress.drive = Drive(load, point, self.settings, waits=self.settled is not None)
            watching = asyncio.gather(
                watch(client, self.target.table.metrics, looks), _settle(drive, point, self.settled)
            )
            try:
                await _undisturbed(drive)
                if drive.trouble is None and any(one.failure in GONE for one in drive.replies):
                    drive.trouble = await _gone(client)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                self.progress.drive = None
        seen = Seen(drive.replies, drive.from_s, drive.to_s)
        steady = drive.steady or self.settings.requests is not None
        row = row_of(
            arm,
            point,
            number,
            seen,
            began=began,
            began_s=drive.began_s or looked_s,
            steady=steady,
            pulse=drive.pulse,
            looks=looks,
            trouble=drive.trouble,
        )
        return row, drive.trouble


def load_of(client: Client, work: Work, point: Point, first: int) -> Load | Crew:
    """Return what puts a load on: this process, or as many as are asked for and have something to do."""
    settings = work.settings
    shared_by = min(settings.processes, int(point.value) if point.kind == "concurrency" else settings.processes)
    if shared_by < 2:  # noqa: PLR2004
        return Load(client, work, point, first)
    job = Job(
        place=client.place,
        settings=settings,
        model=work.model,
        words=work.words,
        prompts=work.prompts,
        point=point,
        first_index=first,
    )
    return Crew(job, shared_by)


async def _settle(drive: Drive, point: Point, settled: Settled | None) -> None:
    """Let a load count from when the server is where it is to be measured."""
    while settled is not None and drive.settled_s is None:
        await asyncio.sleep(LOOK_S)
        if drive.began_s and await settled(point):
            drive.settled_s = time.perf_counter()


async def _undisturbed(drive: Drive) -> None:
    """Run a load without the collector: a pause of it would be a pause of every request."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        await drive.run()
    finally:
        if enabled:
            gc.enable()


async def _gone(client: Client) -> str | None:
    """Say that nobody answers any more, or return None: a load that a death ended late looks like a slow one."""
    status, _ = await client.get("/v1/models")
    return "the server was gone before the measurement was over" if status == 0 else None


def _ignores(results: Results, target: Target) -> bool:
    return results.meta.settings.ignore_eos and target.ignore_eos
