"""Ask the desk on a host for one thing: start, stop, list, show. One process there and back, whatever the reach."""

import json
import subprocess
from typing import Any

import anyio
import anyio.abc

from vigil.errors import HostError, NoPythonError, StateError, UnreachableError, UsageError, VigilError
from vigil.hosts.bundle import program
from vigil.hosts.reach import Reach

SSH_FAILED = 255
NOT_FOUND = (126, 127)


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


async def call(reach: Reach, verb: str, *, timeout_s: float = 60.0, **args: Any) -> dict[str, Any]:
    """Carry `verb` of the desk out on the host and return its answer.

    Raises `UsageError`, `StateError` or `CommandError` as the desk says, `NoPythonError` or `UnreachableError` where it could
    not be asked.
    """
    request = program("desk", json.dumps({"verb": verb, "args": args}))
    try:
        with anyio.fail_after(timeout_s):
            done = await anyio.run_process(
                reach.command,
                input=request,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except TimeoutError as error:
        raise UnreachableError(f"{reach.label}: no answer within {timeout_s:.0f} s") from error
    except OSError as error:
        raise UnreachableError(f"{reach.label}: cannot run {reach.command[0]}: {error.strerror}") from error
    return answer_of(reach, done.returncode, done.stdout, done.stderr)


def answer_of(reach: Reach, returncode: int, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    """Turn what came back into the desk's answer or the right error."""
    lines = stdout.splitlines()
    try:
        reply = json.loads(lines[-1]) if lines else None
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        raise failure(reach, returncode, stderr)
    if "refused" in reply:
        kind = _ERRORS.get(reply["refused"], CommandError)
        raise kind(str(reply.get("text", "refused without a reason")))
    value = reply.get("ok")
    return value if isinstance(value, dict) else {}


def failure(reach: Reach, returncode: int | None, stderr: bytes) -> VigilError:
    """Name why nothing came back: the connection, or no python3 there."""
    words = stderr.decode("utf-8", "replace").strip().splitlines()
    last = words[-1] if words else f"exit code {returncode}"
    if returncode in NOT_FOUND or "python3: not found" in last or "No such file or directory" in last:
        return NoPythonError(f"{reach.label}: no python3 >= 3.9 there ({last})")
    if "Could not resolve hostname" in last:
        return UsageError(f"the host {reach.label} does not resolve ({last}); check --on and your ssh config")
    if returncode == SSH_FAILED and reach.quoted:
        return UnreachableError(f"{reach.label}: {last}")
    return UnreachableError(f"{reach.label}: the reach ended with {returncode}: {last}")
