"""Put the attester into the environment of a start: a file for every Python of it to load, and a folder for their answers.

The file lies in the state folder, under a hash of it: the same for all starts, so that nothing differs between two of them.
"""

import os
import re
from typing import Any, Dict, NamedTuple, Optional

from ..observer.life import ATTESTERS, state_folder
from . import state

FILE = "sitecustomize.py"
SOCKETS, OF = b"VIGIL_ATTEST", b"VIGIL_ATTEST_OF"
LONGEST_TEXT = 1 << 20
_NAME = re.compile(r"[0-9a-f]{16}\Z")


class Attester(NamedTuple):
    """What is put into a start: the program's text, a name for just this text, and at the import of what it begins to answer."""

    text: str
    name: str
    names: str


def read_attester(value: Any) -> Optional[Attester]:
    """Return what a request asks to be put in; None where it asks for nothing."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str) or len(value["text"]) > LONGEST_TEXT:
        return None
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        return None
    names = [str(name) for name in value.get("of") or () if str(name) == "*" or str(name).isidentifier()]
    return Attester(value["text"], name, ",".join(names))


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
    """Return the folder that holds the program; write it where it is not there."""
    data = attester.text.encode("utf-8")
    home = os.path.join(state_folder(), ATTESTERS, attester.name)
    path = os.path.join(home, FILE)
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return home
    except FileNotFoundError:
        pass
    os.makedirs(home, mode=0o700, exist_ok=True)
    partial = "%s.%d" % (path, os.getpid())
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        state.discard(partial)
        raise
    return home
