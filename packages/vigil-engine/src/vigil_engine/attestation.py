"""What a process of the server tells of its switching: one file, `engine-PID.json`, in the folder `VIGIL_ENGINE_DIR`.

Engines swallow the errors of their plugins, so that only a positive sign proves that one works. It is written from the decision's
own call, at each change and at most once a second otherwise: a thread of ours would compete with the engine for its lock.
Clocks are for telling only; no decision looks at one.
"""

import json
import os
import time
from typing import Any, Deque, Dict, List, Optional

from . import __version__
from .policy import Schedule, State
from .schedule import digest

SCHEMA = 1
EVERY_S = 1.0
MINUTE_S = 60.0
RECENT_STEPS = 512
MOST_LINES = 20
MOST_LINE = 300


class Acceptance:
    """How much of what was drafted was accepted: since the start, in the spell of the k in force, and in the last steps."""

    def __init__(self) -> None:
        self.total = [0, 0, 0]  # drafts, drafted tokens, accepted tokens
        self.spell = [0, 0, 0]
        self._windows: Deque[List[int]] = Deque([[0, 0, 0]], maxlen=2)

    def saw(self, drafted: int, accepted: int) -> None:
        """Count one request's verified draft."""
        for count in (self.total, self.spell, self._windows[-1]):
            count[0] += 1
            count[1] += drafted
            count[2] += accepted

    def turn(self) -> None:
        """Begin another window of the recent steps."""
        self._windows.append([0, 0, 0])

    def recent(self) -> List[int]:
        """Return the counts of the last one to two windows."""
        return [sum(values) for values in zip(*self._windows)]  # noqa: B905 - Python 3.9 knows no strict


def shown(counts: List[int]) -> Dict[str, Any]:
    """Return counts as they are told; `length`: tokens a step of the target with the bonus token, None where none was drafted."""
    length = round(1 + counts[2] / counts[0], 4) if counts[0] else None
    return {"drafts": counts[0], "drafted_tokens": counts[1], "accepted_tokens": counts[2], "length": length}


class Attestation:
    """The account of one process. `refused` and `errors` are lines that say why it does not switch."""

    def __init__(self, folder: str, engine: str, version: str, rank: str = "") -> None:
        self.refused: List[str] = []
        self.errors: List[str] = []
        self.acceptance = Acceptance()
        self._folder = folder
        self._head = {
            "schema": SCHEMA,
            "pid": os.getpid(),
            "plugin": __version__,
            "engine": engine,
            "version": version,
            "rank": rank,
        }
        self._policy: Dict[str, Any] = {}
        self._state = State()
        self._k: Optional[int] = None
        self._loads: Deque[int] = Deque(maxlen=16)
        self._since: Dict[str, Any] = {}
        self._changes: Deque[Dict[str, Any]] = Deque(maxlen=16)
        self._switches = 0
        self._switched_at: Deque[float] = Deque(maxlen=1000)
        self._written = -EVERY_S

    def decides(self, schedule: Schedule, measured_on: Optional[Dict[str, Any]] = None) -> None:
        """Note that this process decides, and by which schedule."""
        self._policy = {
            "schedule": digest(schedule),
            "tiers": [list(tier) for tier in schedule.tiers],
            **schedule.policy._asdict(),
        }
        self._policy["measured_on"] = measured_on

    def saw(self, state: State, k: int, load: int) -> None:
        """Note a step: the k that it got, and the load that decided; write where it is time."""
        self._state = state
        self._loads.append(load)
        if state.steps % RECENT_STEPS == 0:
            self.acceptance.turn()
        if k != self._k:
            self._changed(state, k, load)
        elif time.monotonic() - self._written < EVERY_S:
            return
        self.write()

    def _changed(self, state: State, k: int, load: int) -> None:
        if self._k is not None:
            self._switches += 1
            self._switched_at.append(time.monotonic())
            self._changes.append({**self._since, "to_step": state.steps, **shown(self.acceptance.spell)})
        self.acceptance.spell[:] = [0, 0, 0]
        self._k = k
        self._since = {"k": k, "step": state.steps, "at_s": round(time.time(), 3), "load": load}

    def told(self) -> Dict[str, Any]:
        """Return the account as it is now."""
        now = time.monotonic()
        return {
            **self._head,
            "at_s": round(time.time(), 3),
            "deciding": bool(self._policy) and not self.refused and not self.errors,
            "refused": [line[:MOST_LINE] for line in self.refused[:MOST_LINES]],
            "errors": [line[:MOST_LINE] for line in self.errors[:MOST_LINES]],
            **self._policy,
            "mode": self._state.mode,
            "k": self._k,
            "since": self._since,
            "steps": self._state.steps,
            "switches": self._switches,
            "switches_last_minute": sum(1 for at in list(self._switched_at) if now - at < MINUTE_S),
            "loads": list(self._loads),
            "acceptance": {
                "total": shown(self.acceptance.total),
                "recent": shown(self.acceptance.recent()),
                "spell": shown(self.acceptance.spell),
            },
            "spells": list(self._changes),
        }

    def write(self) -> None:
        """Write the account beside its place, and move it there; a disk that is full costs the account and not the server."""
        self._written = time.monotonic()
        path = os.path.join(self._folder, f"engine-{self._head['pid']}.json")
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump(self.told(), file)
            os.replace(f"{path}.new", path)
        except OSError:
            pass
