"""The version of the engine that a command runs, as numbers to compare."""

import re

from vigil.preflight.sight import Sight

_NUMBERS = re.compile(r"[bv]?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?")


def version_of(sight: Sight) -> tuple[int, ...] | None:
    """Return the version of the installed engine: (0, 5, 10), of a llama.cpp build (11434,); None where it is not known."""
    parser, host = sight.parser, sight.host
    told = parser.version if parser is not None else None
    if not told and host is not None and host.program is not None:
        told = host.program.engine
    found = _NUMBERS.match(told or "")
    return tuple(int(one) for one in found.groups() if one is not None) if found is not None else None
