"""Tell a server's deciding processes whether to speculate, and return what each has in force; by its name, on its host."""

import json
import os
import socket
import struct
from typing import Any, Dict, List, Optional

from ..launcher import state
from ..observer.switching import FOLDER, MOST_BYTES, read_accounts

WORDS = ("status", "on", "off", "auto")
PATIENCE_S = 3.0
NOT_SWITCHING = "it does not switch"
_CREDENTIALS = struct.Struct("3i")


def switch(*, name: str, do: str = "status") -> Dict[str, Any]:
    """Return `processes`: of each its account, and `error` where it could not be told."""
    if do not in WORDS:
        raise state.Refused("usage", "%s: give one of %s" % (str(do)[:40], ", ".join(WORDS)))
    known = state.show(name)
    if not known["alive"]:
        raise state.Refused("usage", "%s does not run" % name)
    folder = known["folder"]
    processes = [_told(folder, account, do) for account in read_accounts(folder)]
    if do != WORDS[0] and not any(one.get("asked") for one in processes):
        processes = [{**one, "error": one["error"] or "it cannot be told anything"} for one in processes]
    return {"processes": processes, "plan": known["plan"]}


def _told(folder: str, account: Dict[str, Any], do: str) -> Dict[str, Any]:
    """Return a process's account from its socket; from its file where it has none (SGLang's rank 0 tells the others)."""
    try:
        answer = _ask(os.path.join(folder, FOLDER), account["pid"], do)
    except FileNotFoundError:
        return {**account, "asked": False, "error": "" if account.get("deciding") else NOT_SWITCHING}
    except (OSError, ValueError, RecursionError) as error:
        return {
            **account,
            "asked": False,
            "error": "it does not answer: %s" % (getattr(error, "strerror", None) or error),
        }
    return {**answer, "pid": account["pid"], "asked": True, "error": str(answer.get("error") or "")[:300]}


def _ask(folder: str, pid: int, do: str) -> Dict[str, Any]:
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(PATIENCE_S)
            line.connect("/proc/self/fd/%d/engine-%d.sock" % (at, pid))
            _refuse_strangers(line, pid)
            line.sendall(json.dumps({"do": do}).encode() + b"\n")
            answer = json.loads(_all(line))
    finally:
        os.close(at)
    if isinstance(answer, dict):
        return answer
    raise ValueError("its answer is no account")


def _refuse_strangers(line: socket.socket, pid: int) -> None:
    """Take no answer from another process than the one whose account it is."""
    there: Optional[int] = _CREDENTIALS.unpack(
        line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )[0]
    if there not in (0, pid):  # 0: of another pid namespace
        raise ValueError("pid %s listens at its socket" % there)


def _all(line: socket.socket) -> bytes:
    parts: List[bytes] = []
    while sum(map(len, parts)) <= MOST_BYTES:
        part = line.recv(65536)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
