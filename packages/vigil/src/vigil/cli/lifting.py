"""Bring one arm of a comparison up as `vigil up` does, tied to our life, and say what becomes of it."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from vigil.bench.row import Cause
from vigil.errors import UsageError
from vigil.hosts import tunnel
from vigil.plan import Plan
from vigil.supervise.hold import hold
from vigil.supervise.inventory import inventory
from vigil.supervise.spec import parse_url
from vigil.supervise.watch import Watch
from vigil.verdict import SERVING, Verdict

KNOWN_WITHIN_S = 20.0
CONNECTS_WITHIN_S = 10.0


class Up:
    """A server that is watched. `url`: where we reach it; None: it did not come up."""

    def __init__(self, watch: Watch, url: str | None) -> None:
        self._watch = watch
        verdict, plan = watch.now, watch.plan
        self.url = url
        self.name = watch.launched.name if watch.launched is not None else ""
        self.engine = verdict.engine if verdict.engine != "generic" else None
        self.model = verdict.model
        self._key_env = plan.api_key_env
        self.key = os.environ.get(plan.api_key_env) if plan.api_key_env else None

    async def cause(self) -> Cause | None:
        """Return what became of it; the watching sees an end within seconds, a hang after a while."""
        with anyio.move_on_after(KNOWN_WITHIN_S):
            async for verdict in self._watch:
                if self._watch.over or verdict.word not in SERVING:
                    break
        verdict = self._watch.final or self._watch.now
        return None if verdict.word in SERVING else cause_of(verdict)

    async def ran_on(self) -> dict[str, Any]:
        """Return what it runs on and with."""
        launched = self._watch.launched
        return await inventory(self._watch.reach, launched, self._key_env) if launched is not None else {}


def cause_of(verdict: Verdict) -> Cause:
    """Return a verdict as the cause of a missing measurement."""
    found = verdict.cause
    if found is None:
        return Cause(verdict=verdict.word.value, text=verdict.reason or verdict.last_line)
    return Cause(verdict=verdict.word.value, code=found.code, text=found.text or verdict.reason)


@asynccontextmanager
async def lifted(plan: Plan, tell: Callable[[str], None], at: str | None = None) -> AsyncIterator[Up]:
    """Start a plan, wait until it serves or is over, and stop it at the end, however we end.

    `tell` hears the phases. `at`: where we reach it, where that is another address than on its host. A server on an ssh host is
    reached through ssh else. Raises `UsageError` where it is up and cannot be reached from here.
    """
    watch = Watch(msgspec.structs.replace(plan, attached=True), follow=True)
    async with watch, hold(watch.reach, watch.launched):
        async for verdict in watch:
            if verdict.word in SERVING or watch.over:
                break
            tell(verdict.phase.value.replace("_", " ") if verdict.phase is not None else "")
        url = watch.now.url if watch.now.word in SERVING else None
        if url is None or watch.reach.local:
            yield Up(watch, url)
        elif at is None and plan.on is not None:
            scheme, host, port = parse_url(url)
            async with tunnel(plan.on, host, port) as local:
                yield Up(watch, f"{scheme}://127.0.0.1:{local}")
        else:
            await _must_be_near(plan, at or url)
            yield Up(watch, at or url)


async def _must_be_near(plan: Plan, url: str) -> None:
    """Refuse in one line what serves on its host and takes no connection from here."""
    _, host, port = parse_url(url)
    try:
        with anyio.fail_after(CONNECTS_WITHIN_S):
            stream = await anyio.connect_tcp(host, port)
    except (OSError, TimeoutError) as error:
        raise UsageError(
            f"{plan.name} serves on {plan.host}, but {url} takes no connection from here: let it listen there on all addresses,"
            " or publish its port, and say by --at URL where this machine reaches it"
        ) from error
    await stream.aclose()
