"""Finds the engine's version where its log tells of it."""

from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.text import LogText
from vigil.engine_table import EngineTable, version_in


def find_version(log: LogText, table: EngineTable | None) -> str | None:
    """Return the version that the first line with one names, or None."""
    if table is None or not table.version_patterns:
        return None
    told = (version_in(log.texts[index], table) for index in sorted(log.find_any(how_to_read().versions)))
    return next((version for version in told if version is not None), None)
