"""What was read of files that have not changed since, kept in the state folder: a second look costs a few `stat` calls.

A file counts as the same where path, size and time are the same. What is kept here may be lost at any time, and is of this user.
"""

import hashlib
import json
import os
from typing import Any, Dict, Optional

from ..observer.life import state_folder
from .pieces import Shape, piece

FORM = 1  # of what is kept; another number makes all of it unknown
KEPT_BYTES = 4 << 20
MOST_KEPT = 200


class Remembered:
    """What is known of the files of one folder. Invariant: only what was seen now is kept again."""

    def __init__(self, folder: str) -> None:
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:24]
        self._path = os.path.join(state_folder(), "scout", name + ".json")
        self._old = _read(self._path)
        self._now: Dict[str, Any] = {}
        self._changed = False

    def recall(self, name: str, shape: Shape) -> Optional[Any]:
        """Return what is known of a file, or None where it is another one by now."""
        found = self._old.get(name)
        if not isinstance(found, list) or found[:2] != [shape.size, shape.mtime_ns]:
            return None
        self._now[name] = found
        return found[-1]

    def keep(self, name: str, shape: Shape, what: Any) -> None:
        """Remember what was read of a file."""
        self._now[name] = [shape.size, shape.mtime_ns, what]
        self._changed = True

    def save(self) -> None:
        """Write it down, where that can be done; nothing fails where not."""
        if not self._changed:
            return
        text = json.dumps({"form": FORM, "files": self._now})
        if len(text) > KEPT_BYTES:
            return
        other = "%s.%d" % (self._path, os.getpid())
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
                file.write(text)
            os.replace(other, self._path)
            _forget(os.path.dirname(self._path))
        except OSError:
            pass


def _read(path: str) -> Dict[str, Any]:
    try:
        value = json.loads(piece(path, 0, KEPT_BYTES) or b"")
    except (ValueError, RecursionError):
        return {}
    files = value.get("files") if isinstance(value, dict) and value.get("form") == FORM else None
    return files if isinstance(files, dict) else {}


def _forget(folder: str) -> None:
    """Remove the oldest where there are many."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    if len(paths) > MOST_KEPT:
        for path in sorted(paths, key=os.path.getmtime)[: len(paths) - MOST_KEPT]:
            os.unlink(path)
