"""Find objects in this Python process without a word to any of them: by the types that they have, and never by their own.

Loaded by the attester beside it; standard library only. Nothing here calls a method, compares, hashes or prints an object or a
class of the server: a proxy would answer with its own code.
"""

import _thread
import gc
import itertools
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

LOOK_S = 1.0
MOST_REACHED = 300000
MOST_INSIDE = 20000
"""How many of a large list, dictionary or set are followed: to ask for them all at once holds the interpreter."""
MOST_BLOCKS = 8000000
"""Allocated blocks of a heap that is listed: listing takes its lock for some 15 ms a million objects."""
LET_GO_AT_ONCE = 10000
CO_OPTIMIZED = 1
HAVE_GC = 1 << 14
OWN_REFERENCES = 3
NAMESPACES = {"locals", "vars", "exec", "eval", "dir"}
WRITES_LOCALS_BACK = (3, 11) <= sys.version_info[:2] <= (3, 12)

_inherits = type.__dict__["__mro__"].__get__
_inside_type = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__
type_name = type.__dict__["__name__"].__get__
_qualified = type.__dict__["__qualname__"].__get__
_module_of = type.__dict__["__module__"].__get__
slot_type = type(type.__dict__["__mro__"])
_SLOTS = (slot_type, type(type.__dict__["__dict__"]))
_CLOSED = {id(one) for one in (str, bytes, int, float, bool)} | {
    id(type(one)) for one in (time.time, _inherits, lambda: 0, (lambda: 0).__code__, sys._getframe())
}


# --- one object


def of_type(kind: type, name: str) -> "Any":
    """Return what a class or one that it comes from holds under a name; None where none does."""
    for one in _inherits(kind):
        inside = _inside_type(one)
        if name in inside:
            return inside[name]
    return None


def inside(thing: "Any") -> "Optional[Dict[str, Any]]":
    """Return the attributes that an object itself holds; None where it holds none, or its class says so by code of its own."""
    slot = of_type(type(thing), "__dict__")
    if not any(type(slot) is one for one in _SLOTS):
        return None
    try:
        held = slot.__get__(thing)
    except Exception:
        return None
    return held if type(held) is dict else None


def struct_fields(kind: type) -> "Tuple[Any, ...]":
    """Return the names of the fields of a `msgspec.Struct`, as SGLang 0.5.23 has its arguments: its metaclass has them, in C."""
    slot = of_type(type(kind), "__struct_fields__")
    found = slot.__get__(kind) if any(type(slot) is one for one in _SLOTS) else ()
    return found if type(found) is tuple else ()


def module_of(kind: type) -> str:
    """Return the name of the module that a class says it is of."""
    try:
        told = _module_of(kind)
    except Exception:
        return ""
    return told if type(told) is str else ""


def modules() -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """Yield the modules and their names' values."""
    for name, module in list(sys.modules.items()):
        held = inside(module)
        if type(name) is str and held is not None:
            yield name, held


# --- instances of classes


def instances(names: "List[str]") -> "Dict[str, Any]":
    """Return how many instances of each class were found; those of classes that come from it count.

    `frozen`: there may be some that nobody lists: kept from the collector, never told to it, or among too many.
    """
    kinds = {name: classes(name) for name in names}
    found = {name: {"defined": bool(kinds[name]), "alive": 0, "frozen": False} for name in names}
    seen: "Dict[str, Set[int]]" = {name: set() for name in names}
    wanted = {name: {id(kind) for kind in some} for name, some in kinds.items() if some}
    if not wanted:
        return found
    either = {one for some in wanted.values() for one in some}
    for thing in reached(lambda kind: _comes_from(kind, either), first=False):
        _count(thing, wanted, seen)
    listed = sys.getallocatedblocks() <= MOST_BLOCKS
    if listed and not all(seen[name] for name in wanted):
        for thing in _tracked(either):
            _count(thing, wanted, seen)
    for name, some in kinds.items():
        hidden = not listed or gc.get_freeze_count() > 0 or any(_may_be_untracked(kind) for kind in some)
        found[name] = {**found[name], "alive": len(seen[name]), "frozen": hidden}
    return found


def _comes_from(kind: type, ids: "Set[int]") -> bool:
    return any(id(one) in ids for one in _inherits(kind))


def _count(thing: "Any", wanted: "Dict[str, Set[int]]", seen: "Dict[str, Set[int]]") -> None:
    for name, ids in wanted.items():
        if _comes_from(type(thing), ids):
            seen[name].add(id(thing))


def _may_be_untracked(kind: type) -> bool:
    """Say whether the collector may not know of an instance: a `msgspec.Struct`, as vLLM's requests are, or one made in C."""
    return not _flags(kind) & HAVE_GC or bool(struct_fields(kind))


def classes(name: str) -> "List[type]":
    """Return the classes of a name: bare, as `Outer.Inner`, as `package.module.Class`, or as a module holds it under another."""
    where, _, bare = name.rpartition(".")
    found = [kind for kind in _all_classes() if _is_called(kind, name)]
    for module, held in modules():
        thing: "Any" = held.get(bare) if not where or module == where else None
        if issubclass(type(thing), type) and not any(thing is one for one in found):
            found.append(thing)
    return found


def _is_called(kind: type, name: str) -> bool:
    qualified = _qualified(kind)
    return name in (type_name(kind), qualified) or name == "%s.%s" % (module_of(kind), qualified)


def _all_classes() -> "Iterator[type]":
    """Yield every class that is alive, also those that no module holds."""
    queue, seen = [object], {id(object)}
    for kind in queue:
        yield kind
        for one in type.__subclasses__(kind):
            if id(one) not in seen:
                seen.add(id(one))
                queue.append(one)


def _tracked(ids: "Set[int]") -> "Iterator[Any]":
    """Yield the instances among what the collector tracks. The list is let go piece by piece, too: that holds the interpreter."""
    hits: "Dict[int, bool]" = {}
    for generation in (0, 1, 2):
        things = gc.get_objects(generation=generation)
        while things:
            some = things[-LET_GO_AT_ONCE:]
            del things[-LET_GO_AT_ONCE:]
            for thing in some:
                kind = type(thing)
                hit = hits.get(id(kind))
                if hit is None:
                    hit = hits[id(kind)] = _comes_from(kind, ids)
                if hit:
                    yield thing


# --- what the stacks lead to


def reached(is_wanted: "Callable[[type], bool]", *, first: bool = True) -> "Iterator[Any]":
    """Yield objects that the threads' stacks lead to, within limits: what a server froze is not in the collector's lists.

    `first`: the caller takes one. Objects are followed by the collector's own view of them, which runs no code of theirs.
    """
    hits: "Dict[int, Tuple[bool, bool]]" = {}
    kinds = []  # so that no id is given anew
    until_s = time.monotonic() + LOOK_S
    queue, seen = _roots(), set()
    for number, thing in enumerate(queue):  # grows while it is walked: the nearest come first
        kind = type(thing)
        hit = hits.get(id(kind))
        if hit is None:
            hit = hits[id(kind)] = (is_wanted(kind), _leads_on(kind))
            kinds.append(kind)
        if hit[0]:
            yield thing
            if first:
                return
        if number % 1000 == 0 and time.monotonic() > until_s:
            return
        for one in _within(thing) if hit[1] and len(queue) < MOST_REACHED else ():
            if id(one) not in seen:
                seen.add(id(one))
                queue.append(one)


def _within(thing: "Any") -> "List[Any]":
    """Return what an object leads to, in the collector's view; of a large container the first."""
    kind = type(thing)
    if (kind is list or kind is tuple) and len(thing) > MOST_INSIDE:
        return list(thing[:MOST_INSIDE])
    if (kind is dict or kind is set) and len(thing) > MOST_INSIDE:
        try:
            return list(itertools.islice(thing.values() if kind is dict else thing, MOST_INSIDE))
        except RuntimeError:  # it changed meanwhile
            return []
    return gc.get_referents(thing)


def _leads_on(kind: type) -> bool:
    return id(kind) not in _CLOSED and not issubclass(kind, (type, type(sys)))


def _roots() -> "List[Any]":
    """Return the local variables of all stacks but ours, the outermost frames' first.

    Without the interpreter's lock nobody may look at frames that run.
    """
    found: "List[Any]" = []
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return found
    own = _thread.get_ident()
    for ident, frame in list(sys._current_frames().items()):
        inner: "Optional[Any]" = frame if ident != own else None
        calls: "Optional[List[Any]]" = []  # what the function that this frame calls has
        while inner is not None:
            calls = _locals_of(inner, calls)
            found.extend(calls or ())
            inner = inner.f_back
    return found[::-1]


def _locals_of(frame: "Any", calls: "Optional[List[Any]]") -> "Optional[List[Any]]":
    """Return the values of a frame's variables, and leave the frame as it was. `calls`: those of the frame that it calls.

    Up to Python 3.12, `f_locals` makes or renews a dictionary that the frame keeps, and that its `locals()` is: it is not
    asked of a function that may use it (None), nor left filled with a batch long done. To 3.10 the collector sees the variables.
    """
    if not frame.f_code.co_flags & CO_OPTIMIZED:  # a module, or the body of a class: its real namespace
        return list(frame.f_locals.values()) if type(frame.f_locals) is dict else []
    if sys.version_info < (3, 11):
        outside = (id(frame.f_globals), id(frame.f_builtins))
        return [one for one in gc.get_referents(frame) if id(one) not in outside]
    if not WRITES_LOCALS_BACK:
        return list(frame.f_locals.values())
    if frame.f_trace is not None or not NAMESPACES.isdisjoint(frame.f_code.co_names):
        return None
    if calls is None or any(one is frame for one in calls):
        return []  # it may be shown to a tracer or profiler, after which the dictionary is written back
    values = frame.f_locals
    found = list(values.values())
    if sys.getrefcount(values) == OWN_REFERENCES:
        values.clear()
    return found
