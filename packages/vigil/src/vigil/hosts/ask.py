"""Ask the desk on a host for one thing: start, stop, list, show. One process there and back, whatever the reach."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc

from vigil.errors import UnreachableError
from vigil.hosts.bundle import installed, program
from vigil.hosts.reach import Reach
from vigil.hosts.reply import LONGEST_REPLY_BYTES, answer_of, flooded, late

KEPT_STDERR_BYTES = 8192
LAST_WORDS_S = 0.3  # a master of the user's own ssh may keep our end of its standard error open for hours


# What one verb alone loads, and late.
_BESIDES = {
    "launch": (("survey", "snapshot"),),
    "around": (("survey", "around"),),
    "attest": (("survey", "attested"),),
    "switch": (("survey", "switch"),),
}


async def call(reach: Reach, verb: str, *, timeout_s: float = 60.0, **args: Any) -> dict[str, Any]:
    """Carry `verb` of the desk out on the host and return its answer.

    Raises `UsageError`, `StateError` or `CommandError` as the desk says, `NoPythonError` or `UnreachableError` where it could
    not be asked.
    """
    request = program("launcher", "desk", json.dumps({"verb": verb, "args": args}), _BESIDES.get(verb, ()))
    return await _ask(reach, request, timeout_s)


async def look_ahead(reach: Reach, question: dict[str, Any], *, timeout_s: float = 60.0) -> dict[str, Any]:
    """Ask the scout on the host what is there of a command (see `vigil.scout.desk.Question`); raises as `call` does."""
    make = installed if reach.local else program
    return await _ask(reach, make("scout", "desk", json.dumps(question)), timeout_s)


async def _ask(reach: Reach, request: bytes, timeout_s: float) -> dict[str, Any]:
    try:
        process = await anyio.open_process(reach.command, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise UnreachableError(f"{reach.label}: cannot run {reach.command[0]}: {error.strerror}") from error
    exchange = _Exchange(process)
    try:
        with anyio.fail_after(timeout_s):
            await exchange.run(request)
    except TimeoutError as error:
        raise late(reach, timeout_s) from error
    finally:
        await exchange.close()
    if exchange.flooded:
        raise flooded(reach)
    return answer_of(reach, process.returncode, bytes(exchange.stdout), bytes(exchange.stderr))


class _Exchange:
    """One request and its reply through a process; neither what it prints nor what it leaves running can hold us up."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.flooded = False

    async def run(self, request: bytes) -> None:
        """Send the request; return when the process has ended and what it printed is read, or it printed too much."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._send, request)
            heard = anyio.Event()
            tasks.start_soon(self._read_stderr, heard)
            await self._read_stdout()
            if not self.flooded:
                await self._process.wait()
                with anyio.move_on_after(LAST_WORDS_S):
                    await heard.wait()
            tasks.cancel_scope.cancel()

    async def close(self) -> None:
        """End the process and what it started; it is past its time, or has ended."""
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await self._process.wait()
            await self._process.aclose()

    async def _send(self, request: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened with a pipe
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # its last words say it better
            await self._process.stdin.send(request)
            await self._process.stdin.aclose()

    async def _read_stdout(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - opened with a pipe
        async for data in self._process.stdout:
            self.stdout += data
            if len(self.stdout) > LONGEST_REPLY_BYTES:
                self.flooded = True
                return

    async def _read_stderr(self, heard: anyio.Event) -> None:
        assert self._process.stderr is not None  # noqa: S101 - opened with a pipe
        async for data in self._process.stderr:
            self.stderr += data
            del self.stderr[:-KEPT_STDERR_BYTES]
        heard.set()
