"""Finds the engine's version where its log tells of it."""

import re

from vigil.diagnosis.rules import READING
from vigil.diagnosis.text import LogText
from vigil.engine_table import EngineTable


def find_version(log: LogText, table: EngineTable | None) -> str | None:
    """Return the version that the first line with one names, or None."""
    if table is None or not table.version_patterns:
        return None
    patterns = [re.compile(pattern) for pattern in table.version_patterns]
    for index in sorted(log.find_any(READING.versions)):
        for pattern in patterns:
            if match := pattern.search(log.texts[index]):
                return match[1]
    return None
