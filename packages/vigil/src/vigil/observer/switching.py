"""What vigil-engine told of a server's switching: a file for each process that decides, or that could not."""

import json
import os
from typing import Any, Dict, List, Optional

from .process import read_bytes, read_stat

FOLDER = "engine"
"""The folder beside a start in which the accounts lie, and that of the plugin itself in the state folder."""
PLACE = "{vigil-engine}"
"""What stands in a command for the folder beside the start: only the launcher knows where that is."""
MOST_BYTES = 1 << 18
MOST_PROCESSES = 64
MOST_CHARS = 300
_TEXTS = ("engine", "version", "rank", "schedule", "mode")
_NUMBERS = ("steps", "switches", "switches_last_minute")


def read_switching(folder: Optional[str]) -> List[Dict[str, Any]]:
    """Return the account of each living process of the start in `folder`, as it may go into a fact."""
    return [fact_of(one) for one in read_accounts(folder)]


def read_accounts(folder: Optional[str]) -> List[Dict[str, Any]]:
    """Return each living process's whole account; what is no account is left out."""
    home = os.path.join(folder, FOLDER) if folder else ""
    try:
        names = sorted(os.listdir(home))[: 2 * MOST_PROCESSES] if home else []
    except OSError:
        return []
    found = []
    for name in names:
        pid = name[len("engine-") : -len(".json")]
        if not (name.startswith("engine-") and name.endswith(".json") and pid.isdigit() and len(pid) < 10):  # noqa: PLR2004
            continue
        stat = read_stat(int(pid))
        account = _read(os.path.join(home, name)) if stat is not None and stat.alive else None
        if account is not None:
            found.append({**account, "pid": int(pid)})
    return found[:MOST_PROCESSES]


def fact_of(account: Dict[str, Any]) -> Dict[str, Any]:
    """Return what a fact holds of an account: each field of its type, whatever the file says."""
    fact: Dict[str, Any] = {"pid": account["pid"], "deciding": account.get("deciding") is True}
    for name in _TEXTS:
        fact[name] = _text(account.get(name))
    for name in _NUMBERS:
        fact[name] = _count(account.get(name)) or 0
    fact["k"] = _count(account.get("k"))
    for name in ("refused", "errors"):
        lines = account.get(name)
        fact[name] = [_text(line) for line in lines[:20]] if isinstance(lines, list) else []
    return fact


def _text(value: Any) -> str:
    return value[:MOST_CHARS].encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""


def _count(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        account = json.loads(read_bytes(path, MOST_BYTES) or b"")
    except (ValueError, RecursionError):
        return None
    return account if isinstance(account, dict) else None
