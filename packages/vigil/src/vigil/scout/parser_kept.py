"""What was learnt of an engine's flags, kept in the state folder: by interpreter, version, and the hashes of its files."""

import hashlib
import json
import os
from typing import Any, Dict, Optional

from ..observer.life import state_folder
from ..survey.digest import read_small
from .parser_place import FILE_BYTES, Engine

FORMAT = 2  # of what is kept, and of what is read from a source: a new one forgets all
KEPT_BYTES = 4 << 20
MOST_KEPT = 24


def key_of(interpreter: str, engine: Engine) -> str:
    """Return the name under which an engine's flags are kept: another file, another name."""
    found = hashlib.sha256(json.dumps([FORMAT, interpreter, engine.name, engine.version, engine.folder]).encode())
    for path in sorted(engine.files):
        found.update(
            b"\0%s\0" % os.fsencode(path) + hashlib.sha256(engine.files[path].encode("utf-8", "replace")).digest()
        )
    return found.hexdigest()[:32]


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).digest()


def load(key: str) -> Optional[Dict[str, Any]]:
    """Return what is kept, or None where nothing is, or a file that it came from is another now."""
    try:
        found = json.loads(read_small(os.path.join(_folder(), key + ".json"), KEPT_BYTES) or b"")
    except (ValueError, RecursionError):
        return None
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or not isinstance(found.get("flags"), (list, type(None))):
        return None
    if any(hash_of(path) != told for path, told in files.items()):
        return None
    return {name: value for name, value in found.items() if name != "files"}


def save(key: str, found: Dict[str, Any]) -> None:
    """Keep it; a folder that cannot be written to costs only time."""
    folder = _folder()
    path = os.path.join(folder, key + ".json")
    partial = "%s.%d.part" % (path, os.getpid())
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(found, file)
        os.replace(partial, path)
        _prune(folder)
    except OSError:
        pass


def hash_of(path: str) -> Optional[str]:
    """Return a short hash of a file, or None where it is none."""
    data = read_small(path, FILE_BYTES)
    return hashlib.sha256(data).hexdigest()[:16] if data is not None else None


def _folder() -> str:
    return os.path.join(state_folder(), "parsers")


def _prune(folder: str) -> None:
    """Leave the newest."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    for path in sorted(paths, key=os.path.getmtime, reverse=True)[MOST_KEPT:]:
        os.unlink(path)
