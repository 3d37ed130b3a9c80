"""Open a database in the user's state folder."""

import sqlite3
from pathlib import Path

from vigil.store.folder import private_folder

PATIENCE_S = 5.0  # for another vigil that writes


def open_database(path: Path, tables: str) -> sqlite3.Connection:
    """Open a database and make its `tables` where they are missing. Raises `OSError` or `sqlite3.Error`."""
    private_folder()
    connection = sqlite3.connect(path, timeout=PATIENCE_S)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(tables)
    return connection
