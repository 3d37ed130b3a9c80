"""What a server's own processes really run: the attester that is put into them, and what its answers mean for a plan.

`attester` is one file that is written beside a start and loaded by every Python of the server; it imports nothing of ours.
"""

import hashlib
from importlib import resources
from typing import Any

from vigil.engine_table import EngineTable
from vigil.engines import TABLES

__all__ = ["attester_of"]


def attester_of(expect: tuple[str, ...], table: EngineTable) -> dict[str, Any]:
    """Return what the launcher is asked to put into a start: the program, a name for it, and at the import of what it wakes.

    A start script hides its engine: the packages of every engine wake it. Where something is expected of a program that is no
    engine as we know them, the first file that it loads does.
    """
    text = resources.files("vigil.attest").joinpath("attester.py").read_text("utf-8")
    names = [name for one in TABLES.values() for name in one.imports_as]
    anything = ["*"] if expect and table.name == "generic" else []
    return {"text": text, "name": hashlib.sha256(text.encode()).hexdigest()[:16], "of": [*names, *anything]}
