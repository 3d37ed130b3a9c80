"""What a server's own processes really run: the attester that is put into them, and what its answers mean for a plan.

`attester` is written beside a start as `sitecustomize.py` and loaded by every Python of the server; the thread of one that
answers loads the two files of `BESIDE`. They import nothing of ours.
"""

import hashlib
from importlib import resources
from typing import Any

from vigil.engine_table import EngineTable
from vigil.engines import TABLES

__all__ = ["attester_of", "attester_texts"]

BESIDE = ("finding", "telling")


def attester_of(expect: tuple[str, ...], table: EngineTable) -> dict[str, Any]:
    """Return what the launcher is asked to put into a start: the program, a name for it, and at the import of what it wakes.

    A start script hides its engine: the packages of every engine wake it. Where something is expected of a program that is no
    engine as we know them, the first file that it loads does.
    """
    files = attester_texts()
    names = [name for one in TABLES.values() for name in one.imports_as]
    anything = ["*"] if expect and table.name == "generic" else []
    name = hashlib.sha256("\0".join(files.values()).encode()).hexdigest()[:16]
    return {"files": files, "name": name, "of": [*names, *anything]}


def attester_texts() -> dict[str, str]:
    """Return the attester's files as they lie beside a start: by name, their texts."""
    here = resources.files("vigil.attest")
    names = {"attester": "sitecustomize", **{name: name for name in BESIDE}}
    return {f"{there}.py": here.joinpath(f"{name}.py").read_text("utf-8") for name, there in names.items()}
