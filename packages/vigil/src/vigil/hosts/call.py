"""Ask the desk on a host for one thing: start, stop, list, show. One process there and back, whatever the reach."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc

from vigil.errors import HostError, NoPythonError, StateError, UnreachableError, UsageError, VigilError
from vigil.hosts.bundle import installed, program
from vigil.hosts.reach import Reach
from vigil.screen import plain

SSH_FAILED = 255
NOT_FOUND = (126, 127)
LONGEST_REPLY_BYTES = 32 << 20
KEPT_STDERR_BYTES = 8192
SHOWN_CHARS = 300
LAST_WORDS_S = 0.3  # a master of the user's own ssh may keep our end of its standard error open for hours


class CommandError(HostError):
    """The command itself could not be executed on the host (not installed, not executable)."""


class PortError(HostError):
    """The port that the command asks for is taken on the host."""


_ERRORS: dict[str, type[VigilError]] = {
    "usage": UsageError,
    "unknown": UsageError,
    "state": StateError,
    "python": NoPythonError,
    "port": PortError,
}

# What one verb alone loads, and late.
_BESIDES = {"launch": (("survey", "snapshot"),), "around": (("survey", "around"),), "attest": (("survey", "attested"),)}


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
        raise UnreachableError(f"{reach.label}: no answer within {timeout_s:.0f} s") from error
    finally:
        await exchange.close()
    if exchange.flooded:
        raise UnreachableError(f"{reach.label}: more than {LONGEST_REPLY_BYTES >> 20} MiB came back, and no answer")
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


def answer_of(reach: Reach, returncode: int | None, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    """Turn what came back into the desk's answer or the right error. A login shell may have printed around it."""
    reply = next(filter(None, map(_reply, reversed(stdout.splitlines()))), None)
    if reply is None:
        raise failure(reach, returncode, stderr)
    if "refused" in reply:
        kind = _ERRORS.get(str(reply["refused"]), CommandError)
        raise kind(_on(reach, plain(str(reply.get("text", "refused without a reason")), SHOWN_CHARS * 4)))
    value = reply["ok"]
    return value if isinstance(value, dict) else {}


def _reply(line: bytes) -> dict[str, Any] | None:
    if not line.startswith((b'{"ok": ', b'{"refused": ')):
        return None
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _on(reach: Reach, text: str) -> str:
    return text if reach.local else f"{reach.label}: {text}"


def failure(reach: Reach, returncode: int | None, stderr: bytes) -> VigilError:
    """Name why nothing came back: the connection, or no python3 there."""
    words = [plain(line, SHOWN_CHARS) for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    last = words[-1] if words else f"exit code {returncode}"
    unresolved = next((line for line in words if "Could not resolve hostname" in line), None)
    if unresolved is not None:
        return UsageError(f"the host {reach.label} does not resolve ({unresolved}); check --on and your ssh config")
    missing = next((line for line in words if _names_no_python(line)), None)
    if missing is not None or returncode in NOT_FOUND:
        return NoPythonError(f"{reach.label}: no python3 >= 3.9 there ({missing or last})")
    if returncode == SSH_FAILED and reach.quoted:
        return UnreachableError(f"{reach.label}: {last}")
    return UnreachableError(f"{reach.label}: the reach ended with {returncode}: {last}")


def _names_no_python(line: str) -> bool:
    """Recognise a shell's, env's or a container runtime's word for a program that is not there."""
    low = line.lower()
    return "python3" in low and any(word in low for word in ("not found", "no such file", "cannot find", "can't find"))
