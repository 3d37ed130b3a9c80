"""`vigil.json` beside a draft: where it comes from. A file of its own, so that no engine reads any of it."""

from pathlib import Path
from typing import Any

from vigil_draft.errors import DraftError, NotADraftError
from vigil_draft.formats.folders import read_json

NAME = "vigil.json"
SCHEMA = 1
MOST_BYTES = 1 << 20


def provenance_of(folder: Path) -> dict[str, Any] | None:
    """Return what we wrote beside a draft, None where there is nothing of ours."""
    if not (folder / NAME).exists():
        return None
    try:
        told = read_json(folder / NAME, MOST_BYTES)
    except (DraftError, NotADraftError):
        return None
    return told if isinstance(told, dict) and told.get("schema") == SCHEMA else None


def words_of(told: dict[str, Any] | None) -> str:
    """Return in a line who made a draft, and from what."""
    if told is None:
        return f"no {NAME}: not written by vigil"
    source = told.get("source")
    path = source.get("path") if isinstance(source, dict) else None
    made = f"{told.get('made_by', '?')} {told.get('version', '?')}"
    return made + (f", from {path}" if isinstance(path, str) else "")
