"""The attester: asked over a socket, it says what this Python process really runs. Written as `sitecustomize.py` beside a start.

It may not be felt. At the start of an interpreter it wraps one function of the import system, which notes size and time of each
source file as the loader itself saw them; nothing else. Only a process that imports a package that matters gets a thread, which
sleeps in accept(2) without the interpreter's lock; a fork gets its own. Any error is silence. It works in Python 3.9 and
newer, needs the standard library only, and imports at the start nothing that is not there already.

`VIGIL_ATTEST` names the folder for the sockets, `VIGIL_ATTEST_OF` the packages at whose import the thread begins ("*": any file).
"""

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds of every interpreter's start
    from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

REQUEST_BYTES = 256 << 10
TALK_S = 2.0
LOOK_S = 1.0
MOST_VISITED = 300000
MOST_BLOCKS = 40000000
MOST_VALUES = 4000
TEXT_CHARS = 400
DEEPEST = 3
CO_OPTIMIZED = 1
ROOT_UID = 0

loaded: "Dict[str, Tuple[float, int]]" = {}
"""Source files, with time and size as the loader saw them when it read them."""
_folder = ""
_marks: "Tuple[str, ...]" = ()
_awake = 0  # the pid whose thread runs
_door: "Tuple[int, int]" = (-1, 0)  # descriptor and inode of the socket


# --- at the start


def begin(folder: str, names: str) -> None:
    """Note what the loader reads from now on, and wake when it reads a file of a package that matters."""
    global _folder, _marks
    _folder = folder
    _marks = tuple("" if name == "*" else "/%s/" % name for name in names.split(",") if name)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    original = loader.path_stats

    def path_stats(self: "Any", path: str) -> "Any":
        told = original(self, path)
        try:
            loaded[path] = (told["mtime"], told["size"])
            if not _awake:
                for mark in _marks:
                    if mark in path and mark in "/" + path.rpartition("-packages/")[2]:
                        _wake()
                        break
        except Exception:
            pass
        return told

    loader.path_stats = path_stats
    os.register_at_fork(after_in_child=_forked)


def run_hidden(own: str) -> None:
    """Run the `sitecustomize` that this one hides, exactly as if this one were not there: its errors are its own."""
    sys.path[:] = [one for one in sys.path if one != own]
    external, frozen = sys.modules["_frozen_importlib_external"], sys.modules["_frozen_importlib"]
    spec = external.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = frozen.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _wake() -> None:
    """Begin to answer, once in each process."""
    global _awake
    _awake = os.getpid()
    _thread.start_new_thread(_serve, ())


def _forked() -> None:
    """Begin anew in a forked child, which has none of our threads: it is a rank of its own."""
    global _awake, _door
    try:
        awake, _awake = _awake, 0
        (number, inode), _door = _door, (-1, 0)
        if number >= 0 and os.fstat(number).st_ino == inode:
            os.close(number)
        if awake:
            _wake()
    except Exception:
        pass


# --- the socket


def _serve() -> None:
    door: "Any" = None
    try:
        import _socket

        door = _open_door(_socket)
        if door is None:
            return
        while _is_ours(door):
            number, _ = door._accept()
            talk = _socket.socket(fileno=number)
            try:
                _answer(_socket, talk)
            except Exception:  # of this asker only
                pass
            finally:
                talk.close()
    except BaseException:  # whatever it is: nobody in this process may hear of it
        pass
    if door is not None:
        door.detach()  # its descriptor may be another's by now, and must not be closed with the object


def _open_door(_socket: "Any") -> "Optional[Any]":
    """Listen in the start's folder. A path in /proc leads there: the kernel takes no name longer than 107 bytes."""
    global _door
    handle = os.open(_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_uid not in (os.geteuid(), ROOT_UID):
            return None
        name = "%d.sock" % os.getpid()
        path = "/proc/self/fd/%d/%s" % (handle, name)
        try:
            os.unlink(name, dir_fd=handle)  # of a program that this process was before
        except OSError:
            pass
        door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
        door.bind(path)
        os.chmod(name, 0o600, dir_fd=handle)
        door.listen(64)
    finally:
        os.close(handle)
    _door = (door.fileno(), os.fstat(door.fileno()).st_ino)
    return door


def _is_ours(door: "Any") -> bool:
    """Say whether the descriptor still is our socket: a program may close all of its files, and open others."""
    return _awake == os.getpid() and os.fstat(door.fileno()).st_ino == _door[1]


def _answer(_socket: "Any", talk: "Any") -> None:
    """Answer one request: a line of JSON, and a line back. Only the same user, or root, is heard."""
    import json
    import time

    asker = talk.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    if int.from_bytes(asker[4:8], sys.byteorder) not in (ROOT_UID, os.geteuid(), os.getuid()):
        return
    until_s = time.monotonic() + TALK_S
    data = b""
    while not data.endswith(b"\n"):
        talk.settimeout(max(0.001, until_s - time.monotonic()))
        part = talk.recv(65536)
        data += part
        if not part or len(data) > REQUEST_BYTES or time.monotonic() > until_s:
            return
    request = json.loads(data)
    reply = json.dumps(tell(request)).encode("ascii") + b"\n"
    talk.settimeout(TALK_S)
    talk.sendall(reply)


# --- what is told


def tell(request: "Dict[str, Any]") -> "Dict[str, Any]":
    """Return what was asked for: modules of `packages`, instances of `classes`, `arguments` objects, variables of `marks`."""
    import time

    began_s = time.monotonic()
    wanted = set(request.get("packages") or ())
    classes = [str(one) for one in request.get("classes") or ()]
    holders = [str(one) for one in request.get("arguments") or ()]
    found: "Dict[str, Any]" = {
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "modules": list(_modules(wanted, set(request.get("modules") or ()), set(request.get("files") or ()))),
        "marks": _environment(tuple(request.get("marks") or ())),
        "classes": {},
        "arguments": None,
    }
    try:
        found["arguments"] = _arguments(holders, [str(one) for one in request.get("roots") or ()]) if holders else None
        found["classes"] = _instances(classes) if classes else {}
    except Exception as error:  # the modules are told all the same
        found["trouble"] = type(error).__name__
    found["took_s"] = round(time.monotonic() - began_s, 4)
    return found


def _names() -> "Iterator[Tuple[str, Dict[str, Any]]]":
    """Yield the modules and their names' values, without a word to a module that makes its attributes when asked."""
    for name, module in list(sys.modules.items()):
        try:
            yield name, object.__getattribute__(module, "__dict__")
        except Exception:
            continue


def _modules(packages: "Set[str]", names: "Set[str]", files: "Set[str]") -> "Iterator[List[Any]]":
    """Yield name, file, and time and size of it when it was loaded (None: not seen, as of a compiled module)."""
    for name, inside in _names():
        file = inside.get("__file__")
        if not isinstance(file, str):
            continue
        if name.partition(".")[0] in packages or name in names or (files and os.path.realpath(file) in files):
            then = loaded.get(file) or (None, None)
            yield [name, file, then[0], then[1]]


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
        if thing is not None and type(thing).__name__ in wanted:
            return {"class": type(thing).__name__, "from": root, "values": _values(thing)}
    for thing in _reached(lambda kind: kind.__name__ in wanted):
        return {"class": type(thing).__name__, "from": "a stack", "values": _values(thing)}
    return None


def _at(root: str) -> "Any":
    """Return what `package.module:name.name` is, without loading or making anything."""
    where, _, names = root.partition(":")
    thing = sys.modules.get(where)
    for name in names.split("."):
        try:
            thing = object.__getattribute__(thing, "__dict__").get(name)
        except Exception:
            return None
    return thing


def _values(thing: "Any", depth: int = 0) -> "Dict[str, Any]":
    """Return the fields of a configuration object, those of objects in it as `outer.inner`. Nothing of the engine is called.

    SGLang 0.5.23 keeps what it was asked for, and beside it, in order, what each step decided instead.
    """
    kind = type(thing)
    names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__dataclass_fields__", None) or ()
    inside: "Dict[str, Any]" = {}
    try:
        inside = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        pass
    found: "Dict[str, Any]" = {}
    for name in list(names) or list(inside):
        try:
            value = inside[name] if name in inside else object.__getattribute__(thing, name)
        except Exception:  # a field that was never set
            continue
        if depth < DEEPEST and (
            hasattr(type(value), "__dataclass_fields__") or hasattr(type(value), "__struct_fields__")
        ):
            found.update(("%s.%s" % (name, inner), one) for inner, one in _values(value, depth + 1).items())
        elif not name.startswith("__"):
            found[name] = _plain(value)
        if len(found) > MOST_VALUES:
            break
    for _, decided in inside.get("_resolved_overrides") or ():
        found.update((name, _plain(value)) for name, value in decided.items())
    return found


def _plain(value: "Any", depth: int = 0) -> "Any":
    """Return a value as JSON has it; of anything strange only what it is, since its own words may run anything."""
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value
    if kind is str:
        return value[:TEXT_CHARS]
    if depth < DEEPEST and kind in (list, tuple, set, frozenset):
        return [_plain(one, depth + 1) for one in list(value)[:50]]
    if depth < DEEPEST and kind is dict:
        pairs = [(name, one) for name, one in list(value.items())[:50] if type(name) in (str, int)]
        return {str(name)[:TEXT_CHARS]: _plain(one, depth + 1) for name, one in pairs}
    if kind.__module__ in ("torch", "pathlib"):
        return str(value)[:TEXT_CHARS]
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        held = None
    if type(held) is dict and "_name_" in held:  # an enum
        inner = held.get("_value_")
        return inner if type(inner) in (str, int) else held["_name_"]
    return "<%s>" % kind.__name__


# --- looking for instances


def _instances(names: "List[str]") -> "Dict[str, Any]":
    """Return how many instances of each class were found. Subclasses count, by their types: nothing of the server is called."""
    kinds = {name: _classes(name) for name in names}
    found = {name: {"defined": bool(kinds[name]), "alive": 0, "frozen": False} for name in names}
    seen: "Dict[str, Set[int]]" = {name: set() for name in names}
    wanted = {name: set(found_kinds) for name, found_kinds in kinds.items() if found_kinds}
    if not wanted:
        return found
    either = {one for some in wanted.values() for one in some}
    for thing in _reached(lambda kind: not either.isdisjoint(kind.__mro__), first=False):
        _count(thing, wanted, seen)
    if not all(seen[name] for name in wanted):
        for thing in _tracked(either):
            _count(thing, wanted, seen)
    import gc

    for name in names:
        found[name] = {**found[name], "alive": len(seen[name]), "frozen": gc.get_freeze_count() > 0}
    return found


def _count(thing: "Any", wanted: "Dict[str, Set[type]]", seen: "Dict[str, Set[int]]") -> None:
    for name, kinds in wanted.items():
        if not kinds.isdisjoint(type(thing).__mro__):
            seen[name].add(id(thing))


def _classes(name: str) -> "List[type]":
    """Return the classes of a name: a bare one wherever it is defined, or `package.module.Class`."""
    where, _, bare = name.rpartition(".")
    found = []
    for _, inside in _names():
        thing = inside.get(bare)
        if isinstance(thing, type) and thing not in found and (not where or thing.__module__ == where):
            found.append(thing)
    return found


def _tracked(kinds: "Set[type]") -> "Iterator[Any]":
    """Yield the instances among what the collector tracks. Listing holds the interpreter some ms a million."""
    import gc

    if sys.getallocatedblocks() > MOST_BLOCKS:
        return
    hits: "Dict[type, bool]" = {}
    for generation in (0, 1, 2):
        for thing in gc.get_objects(generation=generation):
            kind = type(thing)
            hit = hits.get(kind)
            if hit is None:
                hit = hits[kind] = not kinds.isdisjoint(kind.__mro__)
            if hit:
                yield thing


def _reached(is_wanted: "Callable[[type], bool]", *, first: bool = True) -> "Iterator[Any]":
    """Yield objects that the threads' stacks lead to, within limits: what a server froze is not in the collector's lists.

    `first`: the caller takes one. Objects are followed by the collector's own view of them, which runs no code of theirs.
    """
    import gc
    import time
    from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType

    closed = {type, str, bytes, int, float, bool, FunctionType, BuiltinFunctionType, CodeType, FrameType, ModuleType}
    hits: "Dict[type, Tuple[bool, bool]]" = {}
    until_s = time.monotonic() + LOOK_S
    queue, seen = _roots(), set()
    visited = 0
    for thing in queue:  # grows while it is walked: the nearest come first
        kind = type(thing)
        hit = hits.get(kind)
        if hit is None:
            hit = hits[kind] = (is_wanted(kind), kind not in closed and not issubclass(kind, (type, ModuleType)))
        if hit[0]:
            yield thing
            if first:
                return
        if not hit[1]:
            continue
        visited += 1
        if visited > MOST_VISITED or (visited % 1000 == 0 and time.monotonic() > until_s):
            return
        for one in gc.get_referents(thing):
            if id(one) not in seen:
                seen.add(id(one))
                queue.append(one)


def _roots() -> "List[Any]":
    """Return the local variables of all stacks but ours, the outermost frames' first."""
    found: "List[Any]" = []
    own = _thread.get_ident()
    for ident, frame in list(sys._current_frames().items()):
        inner: "Optional[Any]" = frame if ident != own else None
        while inner is not None:
            values = inner.f_locals
            found.extend(list(values.values()))
            if sys.version_info < (3, 13) and inner.f_code.co_flags & CO_OPTIMIZED:
                values.clear()  # a copy that the frame would keep, and with it a batch long done
            inner = inner.f_back
    return found[::-1]


def _main() -> None:
    own = os.path.dirname(os.path.abspath(__file__))
    try:
        folder = os.environ.get("VIGIL_ATTEST")
        if folder:
            begin(folder, os.environ.get("VIGIL_ATTEST_OF", ""))
    except Exception:
        pass
    run_hidden(own)


if __name__ == "sitecustomize":
    _main()
