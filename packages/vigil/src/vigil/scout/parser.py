"""See what the installed engine's own parser takes: kept from an earlier look, read from its source, or asked itself.

The source is read at once (a tenth of a second). The parser itself is made, which takes as long as importing the engine does,
where the source alone would not do: a file of it was edited, something in it is not understood, a flag stands there twice, or the
look is a deep one. What was learnt is kept, with the hashes of the files that it came from.
"""

import ast
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

from ..survey.edited import Row, read_record
from ..survey.interpreter import Program, elsewhere, find
from ..survey.packages import Package, Python, python_of
from . import parser_kept
from .parser_place import Engine, find_engine, text_of

if TYPE_CHECKING:
    from .desk import Question
    from .sglang_source import Source

# What reads and what asks is imported where nothing is kept: on a host, each module is compiled anew when it is imported.


class Reading(NamedTuple):
    """What the source says. `source` None: it cannot be read.

    `twice`: the second flag of a name, as (name, file, line); `error`: (file, what in it is no Python).
    """

    source: "Optional[Source]"
    twice: Optional["tuple[str, str, int]"] = None
    error: Optional["tuple[str, SyntaxError]"] = None


def see(question: "Question") -> Dict[str, Any]:
    """Return what was seen, as a `ParserSeen`."""
    program = find(question.words, question.place)
    if program is None:
        outside = elsewhere(question.before)
        why = "it runs in a container, or on another host" if outside else "the program of the command was not found"
        return {"trouble": why}
    if question.engine == "llamacpp":
        from .parser_help import see_help  # noqa: PLC0415

        return see_help(program)
    if question.engine not in {"sglang", "vllm"}:
        return {}
    if not program.python:
        return {"trouble": "%s is no Python program" % program.path}
    return _see_python(question, program)


def _see_python(question: "Question", program: Program) -> Dict[str, Any]:
    python = python_of(program, question.place)
    from_cwd = "-m" in question.words and program.script is None
    engine = find_engine(question.engine, python.sites, question.place, from_cwd=from_cwd)
    if engine is None:
        why = "%s has no %s" % (program.path, question.engine)
        return {"interpreter": program.path, "trouble": why, "foreign": "-m" not in question.words}
    base = {"interpreter": program.path, "version": engine.version}
    key = parser_kept.key_of(python.real, engine)
    kept = parser_kept.load(key)
    if kept is not None and (kept.get("how") == "asked" or not question.deep):
        return {**kept, **base, "kept": True}
    found = {**_look(question, program, engine, python), **base}
    if found.get("how") is not None or found.get("broken") is not None:
        parser_kept.save(key, found)
    return found


def _look(question: "Question", program: Program, engine: Engine, python: Python) -> Dict[str, Any]:
    reading = _read(question.engine, engine)
    edited = _edited(engine, python.prefix, list(engine.files))
    source = reading.source
    if source is not None and not (source.unread or reading.twice or edited or question.deep):
        return {"how": "read", **_plain(source), "files": {}}
    if reading.error is not None and python.version is not None and _is_ours(python.version):
        path, error = reading.error
        broken = {
            "kind": type(error).__name__,
            "text": "%s: %s" % (type(error).__name__, error.msg),
            "line": error.lineno,
        }
        broken.update(file=os.path.join(engine.folder, path), edited=path in edited)
        return {"broken": broken, "edited": edited, "files": {}}
    from .parser_asked import ask  # noqa: PLC0415

    asked = ask(question.engine, program, question.place, engine)
    found: Dict[str, Any] = {"edited": edited, "files": asked.files}
    if asked.flags is not None:
        return {**found, "how": "asked", **_with_configs(asked.flags, source)}
    if asked.broken is not None:
        found["broken"] = _broken(asked.broken, reading, engine, python.prefix)
    if asked.trouble:
        found["trouble"] = asked.trouble
    if source is not None:
        found.update(how="read", whole=not source.unread, **_plain(source))
    return found


def _is_ours(version: str) -> bool:
    """Tell whether the engine's Python has the grammar that ours has: what we cannot parse, it cannot either."""
    return version.split(".")[:2] == [str(one) for one in sys.version_info[:2]]


def _read(name: str, engine: Engine) -> Reading:
    """Return what the source says. What this Python cannot parse, the engine's own may."""
    from . import sglang_source, vllm_source  # noqa: PLC0415

    trees: Dict[str, ast.Module] = {}
    path = ""
    try:
        for path, text in engine.files.items():
            trees[path] = ast.parse(text)
        source = (sglang_source if name == "sglang" else vllm_source).read(trees)
    except SyntaxError as error:
        return Reading(None, error=(path, error))
    except (ValueError, KeyError, RecursionError, MemoryError):
        return Reading(None)
    return Reading(source, _twice(source))


def _twice(source: "Source") -> Optional["tuple[str, str, int]"]:
    seen: Dict[str, int] = {}
    for flag in source.flags:
        for name in flag["names"]:
            if name in seen:
                return name, flag["file"], flag["line"]
            seen[name] = flag["line"]
    return None


def _plain(source: "Source") -> Dict[str, Any]:
    flags = [{key: value for key, value in flag.items() if key not in {"file", "line"}} for flag in source.flags]
    return {"flags": flags, "configs": source.configs}


def _with_configs(flags: List[Dict[str, Any]], source: "Optional[Source]") -> Dict[str, Any]:
    """Return the flags of a parser that was asked, with the classes of their JSON: those only the source tells."""
    classes = {
        name: flag["config"] for flag in (source.flags if source else []) for name in flag["names"] if "config" in flag
    }
    for flag in flags:
        found = next((classes[name] for name in flag["names"] if name in classes), None)
        if found is not None:
            flag["config"] = found
    return {"flags": flags, "configs": source.configs if source else None}


def _edited(engine: Engine, prefix: str, paths: List[str]) -> List[str]:
    """Return which of the engine's files are not what its wheel brought; none where that is not known (a checkout)."""
    if engine.info is None:
        return []
    package = Package(engine.name, engine.version or "", engine.site, engine.info)
    wanted = {os.path.join(os.path.realpath(engine.folder), path): path for path in paths}
    return [wanted[row.path] for row in read_record(package, prefix) if row.path in wanted and _differs(row)]


def _differs(row: Row) -> bool:
    found = text_of(row.path)
    return found is not None and not row.holds(parser_kept.sha256(found))


def _broken(told: Dict[str, Any], reading: Reading, engine: Engine, prefix: str) -> Dict[str, Any]:
    """Return how the parser died, with the place in the engine's files where that is known better from the source."""
    found = dict(told)
    if told.get("kind") == "ArgumentError" and reading.twice is not None:
        name, path, line = reading.twice
        found.update(
            file=os.path.join(engine.folder, path),
            line=line,
            text="%s (%s stands there a second time)" % (told["text"], name),
        )
    path = os.path.relpath(str(found.get("file") or "/"), engine.folder)
    found["edited"] = not path.startswith("..") and bool(_edited(engine, prefix, [path]))
    return found
