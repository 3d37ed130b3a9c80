"""What a server's processes really run: their attesters' answers put together with the disk, told as one fact.

A file is told where somebody may want to know of it: it differs from its wheel, was asked for, or is another than was loaded.
Hashes are taken here and not in the server. Secrets are taken out by name and by look.
"""

import hashlib
import json
import os
import stat
import threading
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from .account import VALUE_CHARS, account, flat
from .alike import files_alike, modules_alike
from .attesters import Answer, ask
from .exchange import Target
from .heard import processes
from .life import ATTESTERS
from .process import read_bytes
from .redact import Redactor
from .rooted import Paths
from .stacks import files_on, find_tool, is_python
from .switching import read_switching

MOST_FILES = 300
MOST_CHANGED = 40
SNAPSHOT_BYTES = 8 << 20
HASHED_BYTES = 32 << 20
SILENT_S = 3.0
MOST_STACKS = 16
STACKS_S = 8.0
CLOCK_SLACK_S = 2.0
NEVER = float("inf")


class Order(NamedTuple):
    """What is asked for. `packages`: import names; `arguments`, `roots`: see the attester; `paths`: where it tells itself."""

    packages: Tuple[str, ...] = ()
    modules: Tuple[str, ...] = ()
    files: Tuple[str, ...] = ()
    classes: Tuple[str, ...] = ()
    arguments: Tuple[str, ...] = ()
    roots: Tuple[str, ...] = ()
    marks: Tuple[str, ...] = ()
    paths: Tuple[str, ...] = ()
    patience_s: float = SILENT_S


def read_order(command: Dict[str, Any]) -> Order:
    """Return what an `attest` command asks for; what is of a wrong type counts as left out."""
    given = {name: command.get(name) for name in Order._fields}
    lists = {name: value for name, value in given.items() if isinstance(value, (list, tuple))}
    told: Dict[str, Any] = {name: tuple(one for one in value if isinstance(one, str)) for name, value in lists.items()}
    patience_s = command.get("patience_s")
    return Order(**told)._replace(patience_s=float(patience_s) if isinstance(patience_s, (int, float)) else SILENT_S)


class Attesting:
    """Asks in a thread of its own, once at a time; `tell` gets the fields of `Attested`."""

    def __init__(self, tell: Callable[[Dict[str, Any]], None]) -> None:
        self._tell = tell
        self._thread: Optional[threading.Thread] = None

    def want(self, look: Callable[[], Dict[str, Any]]) -> None:
        """Begin to ask, unless that is under way."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._run, args=[look], name="vigil-attest", daemon=True)
        self._thread.start()

    def _run(self, look: Callable[[], Dict[str, Any]]) -> None:
        try:
            fields = look()
        except Exception as error:
            fields = {"error": "it could not be asked: %s: %s" % (type(error).__name__, str(error)[:200])}
        self._tell(fields)


def look(  # noqa: PLR0913, PLR0917 - what an account is made of
    folder: Optional[str],
    members: Iterable[Tuple[int, str]],
    order: Order,
    redactor: Redactor,
    target: Optional[Target] = None,
    key: Optional[str] = None,
    *,
    launched: bool = True,
) -> Dict[str, Any]:
    """Return the fields of `Attested`: of the start in `folder` (None: not ours), its processes `members`, and its address.

    Of one that we did not start, stacks and the address are all there is to see: what stands on a stack is loaded.
    """
    edited = _edited(folder)
    tops = {name.partition("/")[0].partition(".py")[0] for one in edited for name in [one["name"]]}
    asked = {one: os.path.realpath(one) for one in order.files if "\0" not in one}
    files = set(asked.values())
    request = {**order._asdict(), "packages": sorted({*order.packages, *tops}), "files": sorted(files)}
    answers = ask(os.path.join(folder, ATTESTERS), request, order.patience_s) if folder else []
    known = dict(members)
    book = _Book(redactor, asked, request, _began_wall_s(folder))
    for answer in answers:
        book.take(answer)
    if not answers and (order.modules or files or not launched):
        book.look_at_stacks([pid for pid in known if is_python(pid)], files, order)
    wanted = files | {one["path"] for one in edited if one["path"]}
    found: Dict[str, Any] = {
        "processes": processes(answers, known, redactor, launched=launched and folder is not None, uid=_owner(folder)),
        "edited": edited,
        "files": book.files(wanted, set(order.modules)),
        "strays": book.strays(edited),
        "instead": book.instead(set(order.modules), asked),
        "classes": book.classes,
        "arguments": book.arguments,
        "switching": read_switching(folder),
    }
    if target is not None and order.paths:
        found["served"] = account(target, key, order.paths, redactor)
    safe: Dict[str, Any] = _safe(found)
    return safe


def _safe(value: Any) -> Any:
    """Return a value whose texts are text: a path may hold bytes that are none."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_safe(name): _safe(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(one) for one in value]
    return value


# --- what the start itself found


def _edited(folder: Optional[str]) -> List[Dict[str, Any]]:
    """Return the files that differ from their wheels, as the start's snapshot has them, and where each lies."""
    data = read_bytes(os.path.join(folder, "snapshot.json"), SNAPSHOT_BYTES) if folder else None
    try:
        told = json.loads(data or b"{}")["edited"]
        sites = told.get("sites") or {}
        return [
            {
                "package": str(package),
                "name": str(name),
                "how": str(how)[:64],
                "site": str(sites.get(package) or ""),
                "path": os.path.realpath(os.path.join(sites[package], name)) if sites.get(package) else "",
            }
            for package, files in told["files"].items()
            for name, how in files.items()
        ][:MOST_FILES]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _owner(folder: Optional[str]) -> Optional[int]:
    try:
        return os.stat(folder).st_uid if folder else None
    except OSError:
        return None


def _began_wall_s(folder: Optional[str]) -> Optional[float]:
    """Return when the start began, by the clock of its host."""
    data = read_bytes(os.path.join(folder, "life.json"), SNAPSHOT_BYTES) if folder else None
    try:
        return float(json.loads(data or b"{}")["started_wall_s"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


# --- what the processes said


class _Book:
    """Puts the answers together: one entry a file, whoever loaded it."""

    def __init__(
        self, redactor: Redactor, asked: Dict[str, str], request: Dict[str, Any], began_wall_s: Optional[float]
    ) -> None:
        self._redactor = redactor
        self._asked = asked
        self._packages, self._modules = set(request["packages"]), set(request["modules"])
        self._bases = {os.path.basename(path) for path in (*asked, *asked.values())}
        self._began_wall_s = began_wall_s
        self._files: Dict[str, Dict[str, Any]] = {}
        self._of_module: Dict[str, Set[str]] = {}
        self._paths = Paths()
        self._now: Dict[str, Tuple[Optional[Tuple[float, int]], float]] = {}
        self._on_stacks: Set[str] = set()
        self.classes: List[Dict[str, Any]] = []
        self.arguments: List[Dict[str, Any]] = []

    def take(self, answer: Answer) -> None:
        """Take one process's answer in, as far as it has the right form."""
        modules = answer.told.get("modules")
        for one in modules if isinstance(modules, list) else ():
            if _is_module(one) and self._matters(answer.pid, one[0], one[1]):
                self._take_module(answer.pid, *one)
        classes = answer.told.get("classes")
        for name, told in classes.items() if isinstance(classes, dict) else ():
            if isinstance(told, dict):
                alive = told.get("alive")
                self.classes.append(
                    {
                        "name": str(name)[:VALUE_CHARS],
                        "pid": answer.pid,
                        "defined": told.get("defined") is True,
                        "alive": alive if isinstance(alive, int) else 0,
                        "frozen": told.get("frozen") is True,
                    }
                )
        self._take_arguments(answer)

    def _take_module(self, pid: int, name: str, file: str, mtime: Any, size: Any) -> None:
        if "\0" in file:
            return
        path = self._paths.real(pid, file) if file else ""
        place = self._paths.root(pid) + path
        entry = self._files.setdefault(
            path or name,
            {"path": path, "place": place, "modules": set(), "pids": set(), "stale": set(), "unsure": True},
        )
        entry["modules"].update([name] if name else [])
        entry["pids"].add(pid)
        self._of_module.setdefault(name, set()).add(path or name)
        if place not in self._now:
            self._now[place] = _stat(place)
        now, touched_s = self._now[place]
        if self._began_wall_s is not None and touched_s < self._began_wall_s - CLOCK_SLACK_S:
            entry["unsure"] = False
        if isinstance(size, int):
            entry["unsure"] = False
            if now != (mtime, size):
                entry["stale"].add(pid)

    def _matters(self, pid: int, name: str, file: str) -> bool:
        """Say whether a module is one that was asked for: where files were, every one of a process is told."""
        if name.partition(".")[0] in self._packages or name in self._modules:
            return True
        if not file or "\0" in file or not self._asked:
            return False
        return os.path.basename(file) in self._bases or self._paths.real(pid, file) in self._asked.values()

    def look_at_stacks(self, pids: List[int], files: Set[str], order: Order) -> None:
        """Take in what of the wanted files, and of the engine, stands on a stack at this moment, where py-spy can see it."""
        tool = find_tool(pids[0]) if pids else None
        ends = {end: name for name in order.modules for end in _ends_of(name)}
        homes = ["/%s/" % name for name in order.packages]
        until_s = time.monotonic() + STACKS_S
        for pid in pids[:MOST_STACKS] if tool else ():
            if time.monotonic() >= until_s:
                return
            for file in files_on(str(tool), pid)[0]:
                named = [name for end, name in ends.items() if file.endswith(end)]
                if named or os.path.realpath(file) in files or any(home in _inside(file) for home in homes):
                    self._take_module(pid, named[0] if named else "", file, None, None)
                    self._on_stacks.add(os.path.realpath(file))

    def _take_arguments(self, answer: Answer) -> None:
        told = answer.told.get("arguments")
        if not isinstance(told, dict) or not isinstance(told.get("values"), dict):
            return
        values = flat(told["values"], self._redactor)
        source = self._redactor.clean("%s, %s" % (told.get("class"), told.get("from")))[:VALUE_CHARS]
        same = next((one for one in self.arguments if one["values"] == values), None)
        if same is not None:
            same["pids"].append(answer.pid)
        else:
            self.arguments.append({"source": source, "pids": [answer.pid], "values": values})

    def files(self, paths: Set[str], modules: Set[str]) -> List[Dict[str, Any]]:
        """Return the files that somebody may want to know of."""
        asked = paths | self._on_stacks | {path for name in modules for path in self._of_module.get(name, ())}
        stale = [path for path, entry in self._files.items() if entry["stale"]][:MOST_CHANGED]
        chosen = [path for path in dict.fromkeys([*sorted(asked), *stale]) if path in self._files]
        return [self._told(self._files[path]) for path in chosen[:MOST_FILES]]

    def _told(self, entry: Dict[str, Any]) -> Dict[str, Any]:
        return {
            "path": self._redactor.clean(entry["path"]),
            "modules": sorted(entry["modules"], key=lambda one: (one not in self._modules, one))[:5],
            "pids": sorted(entry["pids"]),
            "stale": sorted(entry["stale"]),
            "asked": [name for name, path in self._asked.items() if path == entry["path"]],
            "unsure": entry["unsure"],
            "sha256": _sha256(entry["place"]),
        }

    def instead(self, modules: Set[str], asked: Dict[str, str]) -> Dict[str, List[str]]:
        """Return of each module or file that was asked for and nobody has: what is loaded and called alike."""
        found = {name: modules_alike(name, self._of_module) for name in modules if name not in self._of_module}
        for name, path in asked.items():
            if path not in self._files:
                found[name] = files_alike(path, self._files)
        return {name: [self._redactor.clean(one) for one in alike] for name, alike in found.items() if alike}

    def strays(self, edited: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Return the packages with edited files that are loaded from elsewhere: the edits are in a copy that nobody uses."""
        found = []
        for package, site in {one["package"]: one["site"] for one in edited if one["site"]}.items():
            tops = {one["name"].partition("/")[0] for one in edited if one["package"] == package}
            home = tuple(os.path.join(os.path.realpath(site), top) for top in tops)
            ours = [
                entry for entry in self._files.values() if any(m.partition(".")[0] in tops for m in entry["modules"])
            ]
            away = [entry["path"] for entry in ours if not entry["path"].startswith(home)]
            if away and len(away) == len(ours):
                found.append({"package": package, "site": site, "loaded_from": os.path.dirname(min(away, key=len))})
        return found


def _is_module(told: Any) -> bool:
    return isinstance(told, list) and len(told) == 4 and isinstance(told[0], str) and isinstance(told[1], str)  # noqa: PLR2004


def _inside(path: str) -> str:
    """Return a path below the packages' folder: an environment may itself be called as an engine is."""
    return "/" + path.rpartition("-packages/")[2]


def _ends_of(module: str) -> List[str]:
    """Return how the path of a module's file ends."""
    path = "/" + module.replace(".", "/")
    return [path + ".py", path + "/__init__.py"]


def _stat(path: str) -> Tuple[Optional[Tuple[float, int]], float]:
    """Return time and size of a file, and when its content or its names were last touched, which no program can set back."""
    try:
        told = os.stat(path)
    except OSError:
        return None, NEVER
    return (told.st_mtime, told.st_size), told.st_ctime


def _sha256(path: str) -> str:
    """Return the start of the hash of a file as it is on disk; "" where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return ""
    with os.fdopen(handle, "rb") as file:
        told = os.fstat(handle)
        if not stat.S_ISREG(told.st_mode) or told.st_size > HASHED_BYTES:
            return ""
        return hashlib.sha256(file.read(HASHED_BYTES)).hexdigest()[:16]
