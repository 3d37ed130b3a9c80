"""The starts of a name that are kept: which became ready, which are forgotten, and what two of them found."""

import os
import shutil
import time
from typing import Any, Dict, List, NamedTuple, Optional

from . import state

KEPT = 20
KEPT_READY = 3  # of each plan, however many failed since
MOST_READY = 12  # of all plans together
DIGITS = 9  # more is no number of ours
READY = ("ready", "busy", "finished")
SHOWN = 12
PATIENCE_S = 4.0
LOOK_S = 60.0  # how long after a start its snapshot may still come
_OF_A_START = frozenset({"plan.json", "life.json", "exit.json", "verdict.json", "ready.json", state.SNAPSHOT})


class Start(NamedTuple):
    """One start. `stamp` is when it was made, by the host's clock (UTC); `number` counts the starts of its name."""

    name: str
    folder: str
    number: int
    stamp: str


def number_of(start: str) -> int:
    """Return the number of a start by the name of its folder, 0 for what is none."""
    head = start.partition("-")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) <= DIGITS else 0


def starts_of(name: str) -> List[Start]:
    """Return the starts of a name that are kept, oldest first."""
    base = os.path.join(state.server_folder(name), "starts")
    try:
        found = sorted((one for one in os.listdir(base) if number_of(one)), key=number_of)
    except OSError:
        return []
    return [Start(name, os.path.join(base, one), number_of(one), one.partition("-")[2]) for one in found]


# --- which became ready


def note_ready(folder: str, verdict: Any) -> None:
    """Keep that a start became ready: later verdicts on it say something else."""
    path = os.path.join(folder, "ready.json")
    if isinstance(verdict, dict) and _was_ready(verdict) and not os.path.exists(path):
        state.write_json(path, {"wall_s": time.time()})


def became_ready(start: Start) -> bool:
    """Tell whether a start is known to have become ready."""
    if os.path.exists(os.path.join(start.folder, "ready.json")):
        return True
    return _was_ready(state.read_json(os.path.join(start.folder, "verdict.json")))


def _was_ready(verdict: Dict[str, Any]) -> bool:
    attempts = verdict.get("attempts")
    lives = attempts if isinstance(attempts, list) else []
    served = any(isinstance(one, dict) and one.get("ready_s") is not None for one in lives)
    return served or verdict.get("verdict") in READY


def plan_id(start: Start) -> Optional[str]:
    """Return what makes two starts the same plan, None where that is not written down."""
    found = state.read_json(os.path.join(start.folder, "plan.json")).get("plan_id")
    return found if isinstance(found, str) else None


def last_good(start: Start) -> Optional[Start]:
    """Return the newest start before `start` that became ready: of the same plan, else of the same name."""
    earlier = [one for one in starts_of(start.name) if one.number < start.number]
    good = [one for one in reversed(earlier) if became_ready(one)]
    wanted = plan_id(start)
    same = next((one for one in good if wanted is not None and plan_id(one) == wanted), None)
    return same or (good[0] if good else None)


def has_good(name: str, folder: str) -> bool:
    """Tell whether a start of this name before the one in `folder` became ready."""
    here = number_of(os.path.basename(folder))
    return any(became_ready(one) for one in reversed(starts_of(name)) if one.number < here)


# --- which are forgotten


def forget_old(name: str) -> None:
    """Forget all but the newest starts; of older ones that became ready keep what was written down, not their logs."""
    known = starts_of(name)
    if len(known) <= KEPT:
        return
    ready: Dict[Optional[str], int] = {}
    for index, one in enumerate(reversed(known)):
        plan = plan_id(one)
        worth = became_ready(one) and ready.get(plan, 0) < KEPT_READY and sum(ready.values()) < MOST_READY
        if worth:
            ready[plan] = ready.get(plan, 0) + 1
        if index < KEPT:
            continue
        if worth:
            _thin(one.folder)
        else:
            shutil.rmtree(one.folder, ignore_errors=True)


def _thin(folder: str) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif entry.name not in _OF_A_START:
            state.discard(entry.path)


# --- two of them


def compare(
    name: str,
    a: Optional[str] = None,
    b: Optional[str] = None,
    folder: Optional[str] = None,
    patience_s: float = PATIENCE_S,
) -> Dict[str, Any]:
    """Return what two starts found: `a`, else the last good one before, and `b`, else the one in `folder`, else the newest.

    A snapshot that is being taken is waited for.
    """
    known = starts_of(name)
    if not known:
        state.show(name)  # says which names there are
        raise state.Refused("state", "no start of %s is kept" % name)
    later = _named(known, b) if b is not None else _in(known, folder)
    earlier = _named(known, a) if a is not None else last_good(later)
    if earlier == later:
        text = "start %d of %s would be compared with itself: name two; there are %s"
        raise state.Refused("usage", text % (later.number, name, _listed(known)))
    return {
        "name": name,
        "now": time.time(),
        "before": _found(earlier, 0.0) if earlier is not None else None,
        "after": _found(later, patience_s),
        "listed": _listed(known),
    }


def _in(known: List[Start], folder: Optional[str]) -> Start:
    """Return the start in a folder, else the newest."""
    wanted = os.path.basename(folder or "")
    return next((one for one in known if os.path.basename(one.folder) == wanted), known[-1])


def _named(known: List[Start], text: str) -> Start:
    """Return the start of that number, or whose time begins like that; refuse one that is not there, and say which are."""
    text = text.strip()
    if not text:
        raise state.Refused(
            "usage", "a start's name is empty: give its number or its time; there are %s" % _listed(known)
        )
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else None
    found = [one for one in known if one.number == number] or [one for one in known if one.stamp.startswith(text)]
    found = found or [one for one in known if os.path.basename(one.folder) == text]
    if len(found) == 1:
        return found[0]
    what = "%d starts of %s fit" % (len(found), known[0].name) if found else "no start of %s is called" % known[0].name
    raise state.Refused("usage", "%s %s; there are %s" % (what, text[:40], _listed(known)))


def _listed(known: List[Start]) -> str:
    """Return the starts in a line; of many the newest."""
    more = ["%d older" % (len(known) - SHOWN)] if len(known) > SHOWN else []
    return ", ".join(more + [_told(one) for one in known[-SHOWN:]])


def _told(start: Start) -> str:
    word = state.read_json(os.path.join(start.folder, "verdict.json")).get("verdict")
    said = "ready" if became_ready(start) else word if isinstance(word, str) else "no verdict"
    return "%d (%s, %s)" % (start.number, start.stamp, said[:40])


def _found(start: Start, patience_s: float) -> Dict[str, Any]:
    life = state.read_json(os.path.join(start.folder, "life.json"))
    verdict = state.read_json(os.path.join(start.folder, "verdict.json"))
    began = life.get("started_wall_s")
    fresh = isinstance(began, (int, float)) and 0 <= time.time() - began < LOOK_S
    return {
        "number": start.number,
        "stamp": start.stamp,
        "started_wall_s": began if isinstance(began, (int, float)) else None,
        "ready": became_ready(start),
        "verdict": verdict.get("verdict"),
        "cause": verdict.get("cause"),
        "snapshot": _awaited(start, patience_s if fresh else 0.0),
        "snapshot_file": os.path.join(start.folder, state.SNAPSHOT),
        "snapshot_trouble": state.trouble_with(os.path.join(start.folder, state.SNAPSHOT)),
    }


def _awaited(start: Start, patience_s: float) -> Dict[str, Any]:
    """Return a start's snapshot, once it is whole or the patience is over; {} where there is none."""
    until_s = time.monotonic() + patience_s
    pause_s = 0.02
    while True:
        found = state.read_json(os.path.join(start.folder, state.SNAPSHOT))
        if found.get("whole") is True or time.monotonic() >= until_s:
            return found
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.5)
