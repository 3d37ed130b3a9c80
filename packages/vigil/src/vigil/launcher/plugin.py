"""Put vigil-engine into the environment of a start: its files, where Python finds them, and a folder for its accounts.

The files lie in the state folder, under a hash of them, as the attester's do.
"""

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ..observer.life import state_folder
from ..observer.switching import FOLDER, PLACE
from .attester import write_once

SCHEDULE, ACCOUNTS = b"VIGIL_ENGINE_SCHEDULE", b"VIGIL_ENGINE_DIR"
LONGEST_TEXT = 1 << 20
MOST_FILES = 40
_NAME = re.compile(r"[0-9a-f]{16}\Z")
_FILE = re.compile(r"vigil_engine(-[0-9.]{1,20}\.dist-info)?/[A-Za-z_]{1,40}(\.(py|txt))?\Z")
_PLACED = re.compile(r"[a-z]{1,20}\.json\Z")


class Plugin(NamedTuple):
    """What is put into a start: texts of files by name, a name for just these, the schedule, and files of this start alone."""

    files: Dict[str, str]
    name: str
    schedule: str
    placed: Dict[str, str]


def read_plugin(value: Any) -> Optional[Plugin]:
    """Return what a request asks to be put in; None where it asks for nothing, or for what is no such thing."""
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict) or not 0 < len(files) <= MOST_FILES:
        return None
    if not all(
        isinstance(text, str) and len(text) <= LONGEST_TEXT and _FILE.match(str(name)) for name, text in files.items()
    ):
        return None
    name, schedule = value.get("name"), value.get("schedule")
    if not isinstance(name, str) or not _NAME.match(name) or not isinstance(schedule, str) or "\0" in schedule:
        return None
    placed = value.get("placed") or {}
    if not isinstance(placed, dict) or not all(
        _PLACED.match(str(one)) and isinstance(text, str) and len(text) <= LONGEST_TEXT for one, text in placed.items()
    ):
        return None
    return Plugin(dict(files), name, schedule, dict(placed))


def with_plugin(env: Dict[bytes, bytes], plugin: Optional[Plugin], folder: str) -> Dict[bytes, bytes]:
    """Return the environment with the plugin in front of PYTHONPATH; as it is where none can be put there."""
    if plugin is None:
        return env
    home = os.path.join(state_folder(), FOLDER, plugin.name)
    accounts = os.path.join(folder, FOLDER)
    try:
        for name, text in plugin.files.items():
            write_once(os.path.join(home, name), text.encode("utf-8"))
        os.mkdir(accounts, 0o700)
        for name, text in plugin.placed.items():
            write_once(os.path.join(accounts, name), text.encode("utf-8"))
    except OSError:  # that it was not loaded will be seen: no account comes
        return env
    if ":" in home:
        return env
    paths = [os.fsencode(home), *(path for path in [env.get(b"PYTHONPATH")] if path)]
    schedule = plugin.schedule.encode("utf-8")
    return {**env, b"PYTHONPATH": b":".join(paths), SCHEDULE: schedule, ACCOUNTS: os.fsencode(accounts)}


def with_places(words: List[bytes], folder: str) -> List[bytes]:
    """Return a command with the folder of its start where it names it."""
    place = os.fsencode(os.path.join(folder, FOLDER))
    return [word.replace(PLACE.encode(), place) for word in words]


def without_plugin(env: Dict[str, str]) -> Dict[str, str]:
    """Return an environment as whoever started it gave it."""
    if os.fsdecode(ACCOUNTS) not in env:
        return env
    ours = os.path.join(state_folder(), FOLDER) + os.sep
    left = {name: value for name, value in env.items() if name not in {os.fsdecode(SCHEDULE), os.fsdecode(ACCOUNTS)}}
    paths = [path for path in left.pop("PYTHONPATH", "").split(":") if path and not path.startswith(ours)]
    return {**left, "PYTHONPATH": ":".join(paths)} if paths else left
