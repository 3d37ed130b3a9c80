"""The same as a library: `async with vigil.watch(plan) as w: async for verdict in w: ...`, and a blocking `vigil.up(plan)`."""

from pathlib import Path

import anyio

from vigil.plan import Plan
from vigil.supervise.watch import Watch
from vigil.verdict import Verdict


def watch(plan: Plan, *, follow: bool = False, for_s: float | None = None, trace: Path | None = None) -> Watch:
    """Return a watch over a plan, an asynchronous context manager and iterator of verdicts.

    A plan with a command starts it. The last verdict ends the watching; the server goes on. Raises `VigilError` where we could
    not look or act, never because the server is sick.
    """
    return Watch(plan, follow=follow, for_s=for_s, trace=trace)


def up(plan: Plan, *, for_s: float | None = None, trace: Path | None = None) -> Verdict:
    """Start a plan's command (or watch what it names), wait for the verdict, and return it. Blocks; needs no event loop."""

    async def run() -> Verdict:
        async with watch(plan, for_s=for_s, trace=trace) as watching:
            async for _ in watching:
                pass
            return watching.now

    return anyio.run(run)
