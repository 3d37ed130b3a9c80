"""Tie a server's life to ours (`--attached`): when we end, however we end, it is stopped."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc

from vigil.errors import HostError, VigilError
from vigil.hosts import Reach
from vigil.hosts.bundle import program
from vigil.supervise import start

ACKNOWLEDGED_S = 20.0
HOLDING = b"holding"


@asynccontextmanager
async def hold(reach: Reach, started: start.Started | None, grace_s: float = 30.0) -> AsyncIterator[None]:
    """Keep a process beside the server that stops it when its standard input ends: our death closes that, too.

    Raises `HostError` where no such process can be had, after the server was stopped.
    """
    if started is None:
        yield
        return
    process = await _begin(reach, started, grace_s)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await _let_go(process, reach, started, grace_s)


async def _begin(reach: Reach, started: start.Started, grace_s: float) -> anyio.abc.Process:
    """Start the holding process and wait for its word that it holds."""
    request = {"verb": "hold", "args": {"name": started.name, "grace_s": grace_s, "by": "the end of vigil --attached"}}
    try:
        process = await anyio.open_process(reach.command, stderr=subprocess.DEVNULL, start_new_session=True)
        assert process.stdin is not None  # noqa: S101 - opened with a pipe
        assert process.stdout is not None  # noqa: S101 - opened with a pipe
        said = b""
        with anyio.fail_after(ACKNOWLEDGED_S):
            await process.stdin.send(program("launcher", "desk", json.dumps(request)))
            while HOLDING not in said:
                said += await process.stdout.receive()
    except (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
        with anyio.CancelScope(shield=True):
            with suppress(VigilError):
                await start.stop(reach, started.name, grace_s, "vigil --attached, which could not hold it")
            raise HostError(f"{started.name} could not be tied to us through {reach.label}; it was stopped") from error
    return process


async def _let_go(process: anyio.abc.Process, reach: Reach, started: start.Started, grace_s: float) -> None:
    """End the holding process's input, wait until it has stopped the server, and stop it ourselves where it did not."""
    assert process.stdin is not None  # noqa: S101 - opened with a pipe
    await process.stdin.aclose()
    with anyio.move_on_after(grace_s + 30.0):
        await process.wait()
    if process.returncode != 0:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await start.stop(reach, started.name, grace_s, "the end of vigil --attached")
    await process.aclose()
