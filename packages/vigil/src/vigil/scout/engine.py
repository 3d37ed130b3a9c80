"""See the engine that will really run: its program, others of that name, its version, torch's CUDA, files that were edited.

Nothing is imported and nothing is run: names of folders and small files say it.
"""

import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ..survey.digest import read_small
from ..survey.interpreter import FIRST_WORDS, Place, Program, find, which
from ..survey.packages import Python, added, named, python_of
from . import edits

if TYPE_CHECKING:
    from .desk import Question

MOST_OTHERS = 4
_FIELD = re.compile(rb"^(__version__|cuda|hip|rocm|xpu)\b[^=\n]{0,60}= *'([^'\n]{1,60})'", re.MULTILINE)
NCCL = ("nvidia-nccl-cu12", "nvidia-nccl-cu13")  # the wheels that torch's own depend on
_KNOWN = ("sglang", "vllm", "llamacpp")


def see(question: "Question") -> Optional[Dict[str, Any]]:
    """Return the program of a command, as a `ProgramSeen`; None where none is found on this host."""
    program = find(question.words, question.place)
    if program is None:
        return None
    name = question.engine if question.engine in _KNOWN else ""
    found: Dict[str, Any] = {"path": program.script or program.path, "python": program.python, "engine": None}
    if program.python and name:
        python, sites = _python(program, question.place)
        package = named(sites, name)
        found["interpreter"] = python.path
        found["engine"] = package.version if package else None
        found["torch"] = torch_of(sites)
        found["nccl"] = next((one.version for name in NCCL if (one := named(sites, name)) is not None), None)
        found["ray"] = named(sites, "ray") is not None
        found.update(edits.see(question, python, sites, package))
    found["others"] = others(program, question.place, name)
    return found


def _python(program: Program, place: Place) -> Tuple[Python, List[str]]:
    python = python_of(program, place)
    return python, added(python.sites)


def torch_of(sites: List[str]) -> Optional[Dict[str, Any]]:
    """Return torch's version and the CUDA that it was built for, from its version.py; None where it is not there."""
    for site in sites:
        text = read_small(os.path.join(site, "torch", "version.py"), 8192)
        if text:
            told = {name.decode(): value.decode("utf-8", "replace") for name, value in _FIELD.findall(text)}
            rocm = told.get("hip") or told.get("rocm")
            return {"version": told.get("__version__", ""), "cuda": told.get("cuda"), "rocm": rocm}
    return None


def others(program: Program, place: Place, engine: str) -> List[Dict[str, Any]]:
    """Return what else of the program's name is on PATH, in its order, with the version of the engine that it has."""
    path = program.script or program.path
    name, seen = os.path.basename(path), {_key(path, program)}
    found: List[Dict[str, Any]] = []
    for folder in place.env.get("PATH", os.defpath).split(":")[:FIRST_WORDS]:
        other = which(name, folder, place) if folder else None
        if other is None or _key(other, program) in seen or len(found) >= MOST_OTHERS:
            continue
        seen.add(_key(other, program))
        found.append({"path": other, "engine": _version(other, place, engine) if program.python else None})
    return [one for one in found if one["path"] != path]


def _key(path: str, program: Program) -> str:
    """Return what tells two programs apart: of interpreters the folder, since environments share one binary."""
    return os.path.dirname(path) if program.python and program.script is None else os.path.realpath(path)


def _version(path: str, place: Place, engine: str) -> Optional[str]:
    program = find([path], place)
    if program is None or not program.python or not engine:
        return None
    package = named(_python(program, place)[1], engine)
    return package.version if package else None
