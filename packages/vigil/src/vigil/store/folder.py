"""The user's state folder on this host."""

import os
from pathlib import Path


def state_folder() -> Path:
    """Return the user's state folder on this host: `$XDG_STATE_HOME/vigil`, else `~/.local/state/vigil`."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "vigil"


def private_folder(*parts: str) -> Path:
    """Make a folder under the state folder, for its owner only; return it. Raises `OSError` where it cannot be made."""
    folder = state_folder()
    for part in ("", *parts):
        folder /= part
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
