"""Tell what this Python process runs: modules and their files, classes with instances, and the engine's resolved arguments.

Loaded by the attester beside it, with `finding`; standard library only. Nothing of the engine is called.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

    from vigil.attest import finding

MOST_VALUES = 4000
TEXT_CHARS = 4000
"""More than is shown in the end: a secret that a cut went through is not recognized any more."""
DEEPEST = 3
LARGEST = 1 << 63
WORDS = {
    "torch": ("dtype", "device", "layout", "memory_format"),
    "pathlib": ("PosixPath", "PurePosixPath"),
}
"""What is told by its own words, by package: a tensor of that package would begin to compute."""


def tell(request: "Dict[str, Any]", loaded: "Dict[str, Tuple[float, int]]") -> "Dict[str, Any]":
    """Return what was asked for: modules of `packages`, instances of `classes`, `arguments` objects, variables of `marks`.

    Where `files` matter, all modules are told, and all files that were read: which is which file is found by who asks. A call
    to the disk gives the interpreter away, and where it is busy each takes 5 ms to come back.
    """
    began_s = time.monotonic()
    wanted = set(request.get("packages") or ())
    names = [str(one) for one in request.get("classes") or ()]
    holders = [str(one) for one in request.get("arguments") or ()]
    every = bool(request.get("files"))
    found: "Dict[str, Any]" = {
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "modules": list(_modules(wanted, set(request.get("modules") or ()), loaded, every=every)),
        "marks": _environment(tuple(request.get("marks") or ())),
        "classes": {},
        "arguments": None,
    }
    try:
        found["arguments"] = _arguments(holders, [str(one) for one in request.get("roots") or ()]) if holders else None
        found["classes"] = finding.instances(names) if names else {}
    except Exception as error:  # the modules are told all the same
        found["trouble"] = type(error).__name__
    found["took_s"] = round(time.monotonic() - began_s, 4)
    return found


def _modules(
    packages: "Set[str]", names: "Set[str]", loaded: "Dict[str, Tuple[float, int]]", *, every: bool
) -> "Iterator[List[Any]]":
    """Yield name, file, and time and size of it when it was loaded (None: not seen, as of a compiled module).

    No name: it was read, and is the file of no module now. Its import failed, or it was run by other means. No file: a
    module that has none, as one that is built in, or a folder without an `__init__.py`.
    """
    told = set()
    for name, inside in finding.modules():
        file = inside.get("__file__")
        if type(file) is not str:
            if name in names:
                yield [name, "", None, None]
            continue
        if every or name.partition(".")[0] in packages or name in names:
            told.add(file)
            then = loaded.get(file) or (None, None)
            yield [name, file, then[0], then[1]]
    for file, seen in list(loaded.items()) if every else ():
        if file not in told:
            yield ["", file, seen[0], seen[1]]


def _environment(marks: "Tuple[str, ...]") -> "Dict[str, str]":
    """Return the variables whose names begin like that, as this process has them now."""
    if not marks:
        return {}
    return {name: value[:TEXT_CHARS] for name, value in os.environ.items() if name.startswith(marks)}


def _arguments(names: "List[str]", roots: "List[str]") -> "Optional[Dict[str, Any]]":
    """Return the engine's own arguments: where its module keeps them, else as an object that one of its stacks leads to."""
    wanted = set(names)
    for root in roots:
        thing = _at(root)
        if thing is not None and finding.type_name(type(thing)) in wanted:
            return {"class": finding.type_name(type(thing)), "from": root, "values": _values(thing)}
    for thing in finding.reached(lambda kind: finding.type_name(kind) in wanted):
        return {"class": finding.type_name(type(thing)), "from": "a stack", "values": _values(thing)}
    return None


def _at(root: str) -> "Any":
    """Return what `package.module:name.name` is, without loading or making anything."""
    where, _, names = root.partition(":")
    thing = sys.modules.get(where)
    for name in names.split("."):
        thing = (finding.inside(thing) or {}).get(name)
    return thing


def _values(thing: "Any", depth: int = 0) -> "Dict[str, Any]":
    """Return the fields of a configuration object, those of objects in it as `outer.inner`.

    SGLang 0.5.23 keeps what it was asked for, and beside it, in order, what each step decided instead.
    """
    inside = finding.inside(thing) or {}
    found: "Dict[str, Any]" = {}
    for name in list(_fields(type(thing))) or list(inside):
        if type(name) is not str or name.startswith("__"):
            continue
        try:
            value = inside[name] if name in inside else _slot(thing, name)
        except Exception:  # a field that was never set
            continue
        if depth < DEEPEST and _fields(type(value)):
            found.update(("%s.%s" % (name, inner), one) for inner, one in _values(value, depth + 1).items())
        else:
            found[name] = _plain(value)
        if len(found) > MOST_VALUES:
            break
    overrides: "Any" = inside.get("_resolved_overrides")
    for pair in overrides if type(overrides) in (list, tuple) else ():
        if type(pair) in (list, tuple) and len(pair) == 2 and type(pair[1]) is dict:  # noqa: PLR2004 - (step, decided)
            found.update((name, _plain(value)) for name, value in list(pair[1].items()) if type(name) is str)
    return found


def _fields(kind: type) -> "Any":
    """Return the names of the fields of a dataclass, or of a `msgspec.Struct`; else nothing."""
    found = finding.of_type(kind, "__dataclass_fields__")
    return finding.struct_fields(kind) or (found if type(found) is dict else ())


def _slot(thing: "Any", name: str) -> "Any":
    slot = finding.of_type(type(thing), name)
    if type(slot) is not finding.slot_type:
        raise AttributeError(name)
    return slot.__get__(thing)


def _plain(value: "Any", depth: int = 0) -> "Any":
    """Return a value as JSON has it; of anything strange only what it is, since its own words may run anything."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        return value if -LARGEST <= value < LARGEST else "<int>"
    if kind is str:
        return value[:TEXT_CHARS]
    if depth < DEEPEST and (kind is list or kind is tuple):
        return [_plain(one, depth + 1) for one in value[:50]]
    if depth < DEEPEST and (kind is set or kind is frozenset):
        return [_plain(one, depth + 1) for one in list(value)[:50]]
    if depth < DEEPEST and kind is dict:
        pairs = [(name, one) for name, one in list(value.items())[:50] if type(name) in (str, int)]
        return {str(name)[:TEXT_CHARS]: _plain(one, depth + 1) for name, one in pairs}
    name = finding.type_name(kind)
    if name in WORDS.get(finding.module_of(kind).partition(".")[0], ()):
        return str(value)[:TEXT_CHARS]
    held = finding.inside(value)
    if held is not None and "_name_" in held:  # an enum
        inner = held.get("_value_")
        return _plain(inner if type(inner) in (str, int) else held["_name_"], DEEPEST)
    return "<%s>" % name
