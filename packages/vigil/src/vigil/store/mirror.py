"""What was last known of servers on other hosts, kept here: for the moment when their host cannot be reached."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from vigil.store.database import open_database
from vigil.store.folder import state_folder
from vigil.verdict import Verdict, Word

_TABLE = """
create table if not exists known (
    host text not null, name text not null, at real not null, verdict text not null, primary key (host, name)
);
"""


class Known(NamedTuple):
    """The last verdict on a server that was given here, and how long ago, in seconds."""

    verdict: Verdict
    age_s: float


class Mirror:
    """The newest verdict on each server elsewhere. A mirror that cannot be read or written shows and keeps nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or state_folder() / "elsewhere.db"

    def keep(self, host: str, verdict: Verdict) -> None:
        """Keep a verdict; one that only says that the host cannot be reached replaces nothing that was seen."""
        if not verdict.name or verdict.word is Word.UNREACHABLE:
            return
        row = (host, verdict.name, time.time(), msgspec.json.encode(verdict).decode())
        try:
            with closing(open_database(self._path, _TABLE)) as connection, connection:
                connection.execute("insert or replace into known values (?, ?, ?, ?)", row)
        except (sqlite3.Error, OSError):
            return

    def last(self, host: str, name: str) -> Known | None:
        """Return what was last known, or None."""
        try:
            with closing(open_database(self._path, _TABLE)) as connection:
                row = connection.execute(
                    "select at, verdict from known where host = ? and name = ?", (host, name)
                ).fetchone()
            return Known(msgspec.json.decode(row[1], type=Verdict), max(0.0, time.time() - row[0])) if row else None
        except (sqlite3.Error, OSError, msgspec.DecodeError):  # or written by another version
            return None
