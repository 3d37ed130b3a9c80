"""What came back from a host, turned into the answer that it is or the error that it means."""

import json
from typing import Any

from vigil.errors import HostError, NoPythonError, StateError, UnreachableError, UsageError, VigilError
from vigil.hosts.reach import Reach
from vigil.screen import plain

SSH_FAILED = 255
NOT_FOUND = (126, 127)
LONGEST_REPLY_BYTES = 32 << 20
SHOWN_CHARS = 300


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


def answer_of(reach: Reach, returncode: int | None, stdout: bytes, stderr: bytes) -> dict[str, Any]:
    """Turn what came back into the desk's answer or the right error."""
    answer = answer_in(reach, stdout)
    if answer is None:
        raise failure(reach, returncode, stderr)
    return answer


def answer_in(reach: Reach, stdout: bytes) -> dict[str, Any] | None:
    """Return the answer in what was printed, or None; raise what it refuses. A login shell may have printed around it."""
    reply = next(filter(None, map(_reply, reversed(stdout.splitlines()))), None)
    if reply is None:
        return None
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


def late(reach: Reach, timeout_s: float) -> UnreachableError:
    """Return the error of a host that took too long to answer."""
    return UnreachableError(f"{reach.label}: no answer within {timeout_s:.0f} s")


def flooded(reach: Reach) -> UnreachableError:
    """Return the error of a host that answered with more than any answer has."""
    return UnreachableError(f"{reach.label}: more than {LONGEST_REPLY_BYTES >> 20} MiB came back, and no answer")
