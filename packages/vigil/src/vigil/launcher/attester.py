"""Put the attester into the environment of a start: files for every Python of it to load, and a folder for their answers.

They lie in the state folder, under a hash of them: the same for all starts, so that nothing differs between two of them.
"""

import os
import re
from typing import Any, Dict, NamedTuple, Optional

from ..observer.life import ATTESTERS, state_folder
from . import state

FIRST = "sitecustomize.py"
SOCKETS, OF = b"VIGIL_ATTEST", b"VIGIL_ATTEST_OF"
LONGEST_TEXT = 1 << 20
MOST_FILES = 8
_NAME = re.compile(r"[0-9a-f]{16}\Z")
_FILE = re.compile(r"[a-z]{1,40}\.py\Z")


class Attester(NamedTuple):
    """What is put into a start: the texts of its files, a name for just these, and at the import of what it begins to answer."""

    files: Dict[str, str]
    name: str
    names: str


def read_attester(value: Any) -> Optional[Attester]:
    """Return what a request asks to be put in; None where it asks for nothing."""
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or FIRST not in files or not all(_is_file(*pair) for pair in files.items()):
        return None
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        return None
    names = [str(name) for name in value.get("of") or () if str(name) == "*" or str(name).isidentifier()]
    return Attester(dict(list(files.items())[:MOST_FILES]), name, ",".join(names))


def _is_file(name: Any, text: Any) -> bool:
    return isinstance(text, str) and len(text) <= LONGEST_TEXT and _FILE.match(str(name)) is not None


def with_attester(env: Dict[bytes, bytes], attester: Optional[Attester], folder: str) -> Dict[bytes, bytes]:
    """Return the environment with the attester in front of PYTHONPATH; as it is where none can be put there."""
    if attester is None:
        return env
    try:
        home = _written(attester)
        sockets = os.path.join(folder, ATTESTERS)
        os.mkdir(sockets, 0o700)
    except OSError:  # a full disk must not keep a server from starting
        return env
    if ":" in home:
        return env
    paths = [os.fsencode(home), *(path for path in [env.get(b"PYTHONPATH")] if path)]
    return {**env, b"PYTHONPATH": b":".join(paths), SOCKETS: os.fsencode(sockets), OF: attester.names.encode()}


def without_attester(env: Dict[str, str]) -> Dict[str, str]:
    """Return an environment as whoever started it gave it."""
    if os.fsdecode(SOCKETS) not in env:
        return env
    ours = os.path.join(state_folder(), ATTESTERS) + os.sep
    left = {name: value for name, value in env.items() if name not in {os.fsdecode(SOCKETS), os.fsdecode(OF)}}
    paths = [path for path in env.get("PYTHONPATH", "").split(":") if path and not path.startswith(ours)]
    left.pop("PYTHONPATH", None)
    return {**left, "PYTHONPATH": ":".join(paths)} if paths else left


def _written(attester: Attester) -> str:
    """Return the folder that holds the program; write what of it is not there. The file that loads the others comes last."""
    home = os.path.join(state_folder(), ATTESTERS, attester.name)
    for name in sorted(attester.files, key=lambda one: one == FIRST):
        write_once(os.path.join(home, name), attester.files[name].encode("utf-8"))
    return home


def write_once(path: str, data: bytes) -> None:
    """Write a file that is the same for all starts, where it is not there yet."""
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    partial = "%s.%d" % (path, os.getpid())
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        state.discard(partial)
        raise
