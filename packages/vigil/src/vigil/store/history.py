"""Earlier starts of a plan: how long they took, and how long each phase was quiet. SQLite, in the user's state folder."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec

from vigil.plan import Plan
from vigil.store.database import open_database
from vigil.store.folder import state_folder
from vigil.verdict import Verdict, Word

KEPT = 20
KEPT_EACH = 100
_TABLE = """
create table if not exists starts (
    plan text not null, name text not null, host text not null, at real not null,
    verdict text not null, ready_after_s real, phases text not null, quiet_s text not null, whole text not null
);
create index if not exists starts_by_plan on starts (plan, at);
"""


_FORGET = """
delete from starts where plan = ? and rowid not in (select rowid from starts where plan = ? order by rowid desc limit ?)
"""


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What earlier starts lead us to expect. `ready_after_s`: the median; `slowest_quiet_s` per phase: the longest."""

    ready_after_s: float | None = None
    slowest_quiet_s: dict[str, float] = msgspec.field(default_factory=dict)

    def left_s(self, up_s: float) -> float | None:
        """Return when a start that has run for `up_s` seconds should be ready, counted from now."""
        return None if self.ready_after_s is None else max(0.0, self.ready_after_s - up_s)


class History:
    """The starts that were watched from this host. A history that cannot be read or written is no reason to stop watching."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or state_folder() / "history.db"

    def expected(self, plan: Plan, plan_id: str | None = None) -> Expected:
        """Return what the starts of this plan that became ready took; empty where there are none.

        `plan_id`: that of the plan behind a server that is taken up by its name, which alone does not say it.
        """
        try:
            with closing(open_database(self._path, _TABLE)) as connection:
                rows = connection.execute(
                    "select ready_after_s, quiet_s from starts where plan = ? and verdict = ? order by rowid desc limit ?",
                    (plan_id or plan.id, Word.READY.value, KEPT),
                ).fetchall()
        except (sqlite3.Error, OSError):
            return Expected()
        times = sorted(row[0] for row in rows if isinstance(row[0], float))
        slowest: dict[str, float] = {}
        for _, quiet in rows:
            for phase, quiet_s in _quiet_of(quiet).items():
                slowest[phase] = max(quiet_s, slowest.get(phase, 0.0))
        return Expected(ready_after_s=times[len(times) // 2] if times else None, slowest_quiet_s=slowest)

    def add(self, plan: Plan, verdict: Verdict, quiet_s: dict[str, float]) -> str | None:
        """Keep how a start went; return what went wrong, if it could not be kept."""
        spans = {span.name.value: round(span.to_s - span.from_s, 3) for span in verdict.phases if span.to_s is not None}
        ready_after_s = verdict.since_s if verdict.word is Word.READY else None
        row = (
            plan.id,
            verdict.name,
            verdict.host,
            time.time(),
            verdict.word.value,
            ready_after_s,
            msgspec.json.encode(spans).decode(),
            msgspec.json.encode(quiet_s).decode(),
            msgspec.json.encode(verdict).decode(),
        )
        try:
            with closing(open_database(self._path, _TABLE)) as connection, connection:
                connection.execute("insert into starts values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
                connection.execute(_FORGET, (plan.id, plan.id, KEPT_EACH))
        except (sqlite3.Error, OSError) as error:
            return f"the history of starts cannot be written: {error}"
        return None


def _quiet_of(text: str) -> dict[str, float]:
    try:
        return msgspec.json.decode(text, type=dict[str, float])
    except (msgspec.DecodeError, TypeError):  # a row that something else wrote
        return {}
