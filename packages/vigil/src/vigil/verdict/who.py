"""Name processes of a server for people: by the ranks in their titles, many of a kind in one word."""

import re
from collections.abc import Iterable

from vigil.fact_parts import AttestedProcess

_NUMBERED = re.compile(r"(.*?)(\d{1,5})\Z")
_TITLE = re.compile(r"[\w.-]{2,20}::([\w-]{1,60})")
SHOWN = 6


def label(process: AttestedProcess) -> str:
    """Return a short name: `scheduler_TP0` of the title `sglang::scheduler_TP0`, else its program and pid."""
    match = _TITLE.match(process.title)
    if match is not None:
        return match[1]
    words = process.title.split()
    helper = next((part for part in ("resource_tracker", "multiprocessing.spawn") if part in process.title), None)
    name = helper or (words[0].rpartition("/")[2] if words else "process")
    return f"{name} (pid {process.pid})"


def kind(process: AttestedProcess) -> str:
    """Return what processes of one kind share: `scheduler_TP` of rank 0 and of rank 7."""
    name = label(process)
    match = _NUMBERED.match(name)
    return match[1] if match is not None else name


def named(processes: Iterable[AttestedProcess]) -> str:
    """Return names for some processes: `scheduler_TP0..7, detokenizer`; "none" for none."""
    singles: list[str] = []
    rows: dict[str, list[int]] = {}
    for one in processes:
        name = label(one)
        match = _NUMBERED.match(name)
        if match is not None:
            rows.setdefault(match[1], []).append(int(match[2]))
        else:
            singles.append(name)
    told = [f"{name}{_range(sorted(set(numbers)))}" for name, numbers in rows.items()] + singles
    left = len(told) - SHOWN
    return ", ".join([*told[:SHOWN], *([f"{left} more"] if left > 0 else [])]) or "none"


def _range(numbers: list[int]) -> str:
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}..{numbers[-1]}"
    return ",".join(map(str, numbers[:SHOWN]))
