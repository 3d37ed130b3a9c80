"""Bring one arm of a comparison up as `vigil up` does, tied to our life, and say what becomes of it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec

from vigil.bench.row import Cause
from vigil.plan import Plan
from vigil.supervise.hold import hold
from vigil.supervise.watch import Watch
from vigil.verdict import SERVING, Verdict

KNOWN_WITHIN_S = 20.0


class Up:
    """A server that is watched. `url` None: it did not come up."""

    def __init__(self, watch: Watch, key: str | None) -> None:
        self._watch = watch
        verdict = watch.now
        serves = verdict.word in SERVING
        self.url = verdict.url if serves else None
        self.engine = verdict.engine if verdict.engine != "generic" else None
        self.model = verdict.model
        self.key = key

    async def cause(self) -> Cause | None:
        """Return what became of it; the watching sees an end within seconds, a hang after a while."""
        with anyio.move_on_after(KNOWN_WITHIN_S):
            async for verdict in self._watch:
                if self._watch.over or verdict.word not in SERVING:
                    break
        verdict = self._watch.final or self._watch.now
        return None if verdict.word in SERVING else cause_of(verdict)


def cause_of(verdict: Verdict) -> Cause:
    """Return a verdict as the cause of a missing measurement."""
    found = verdict.cause
    if found is None:
        return Cause(verdict=verdict.word.value, text=verdict.reason or verdict.last_line)
    return Cause(verdict=verdict.word.value, code=found.code, text=found.text or verdict.reason)


@asynccontextmanager
async def lifted(plan: Plan) -> AsyncIterator[Up]:
    """Start a plan, wait until it serves or is over, and stop it at the end, however we end."""
    key = os.environ.get(plan.api_key_env) if plan.api_key_env else None
    watch = Watch(msgspec.structs.replace(plan, attached=True), follow=True)
    async with watch, hold(watch.reach, watch.launched):
        async for verdict in watch:
            if verdict.word in SERVING or watch.over:
                break
        yield Up(watch, key)
