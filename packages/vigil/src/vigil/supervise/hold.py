"""Tie a server's life to ours (`--attached`): when we end, however we end, it is stopped."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from vigil.hosts import Reach
from vigil.hosts.bundle import program
from vigil.supervise.start import Started


@asynccontextmanager
async def hold(reach: Reach, started: Started | None, grace_s: float = 30.0) -> AsyncIterator[None]:
    """Keep a process beside the server that stops it when its standard input ends: our death closes that, too."""
    if started is None:
        yield
        return
    request = {"verb": "hold", "args": {"name": started.name, "grace_s": grace_s, "by": "the end of vigil --attached"}}
    process = await anyio.open_process(
        reach.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101 - opened with a pipe
    try:
        await process.stdin.send(program("desk", json.dumps(request)))
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await process.stdin.aclose()
            with anyio.move_on_after(grace_s + 30.0):
                await process.wait()
            await process.aclose()
