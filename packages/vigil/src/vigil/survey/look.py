"""One look at what a start found, part by part. A part that cannot be looked at is noted, and the others go on."""

import os
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

from ..observer.life import state_folder
from ..observer.redact import secrets_of
from . import checkout, edited, machine, models, packages
from .digest import Budget, ends_sha256, read_small, whole_sha256
from .inside import look_inside
from .interpreter import Place, Program, elsewhere, find, paths_named
from .variables import Keeper, kept_variables, kept_words

QUICK = (10.0, 64 << 20)
THOROUGH = (25.0, 256 << 20)  # seconds and bytes for what is looked at last
WHOLE_BYTES = 64 << 20
MOST_MODELS = 8
MOST_NAMED = 32
LARGEST_NAMED = 4 << 20
MOST_LIBRARIES = 40
MOST_TROUBLES = 10


class Look:
    """Looks at a start; `found` holds what was seen so far. The order of the steps is that of their cost."""

    def __init__(
        self, words: List[str], place: Place, main: Dict[str, int], keep: Keeper, asked: Dict[str, Any]
    ) -> None:
        self.found: Dict[str, Any] = {"troubles": []}
        self._words = words
        self._main = main
        self._place = place
        self._keep = keep
        self._asked = asked
        self._program: Optional[Program] = None
        self._python: Optional[packages.Python] = None
        self._packages: Dict[str, packages.Package] = {}

    def at_once(self) -> None:
        """See what costs nothing."""
        self.found["key_id"] = self._keep.key_id
        self._part("command", self._command)
        self._part("env", lambda: kept_variables(self._place.env, self._keep))
        self._part("machine", machine.basics)

    def around(self) -> None:
        """Look at the program, its packages, the model, GPUs and disks."""
        self._part("gpus", machine.gpus)
        self._part("program", self._see_program)
        self._part("packages", self._versions)
        self._part("files", self._files)
        self._part("models", self._models)
        self._part("disks", lambda: machine.disks(self._places()))

    def into(self) -> None:
        """See what a start script came to, and compare the engine's files with what was installed."""
        if self._program is None and not elsewhere(self._words):
            self._part("inner", self._see_inner)
        budget = Budget(*THOROUGH)
        self._part("sources", lambda: self._sources(self._chosen(), budget))
        prefix = self._python.prefix if self._python else "/"
        self._part("edited", lambda: edited.edited_files(self._chosen(), prefix, budget))

    def _see_inner(self) -> Optional[Dict[str, Any]]:
        """Look at the process of the engine itself, and take its words and its environment for the rest of the look."""
        inner = look_inside(self._main, strings(self._asked.get("signs")))
        if inner is None:
            return None
        self._keep.redactor.learn(secrets_of(inner.words, inner.place.env.items(), self._keep.redactor.key_flags))
        self._words, self._place = inner.words, inner.place
        self._part("program", self._see_program)
        self._part("packages", self._versions)
        self._part("models", self._models)
        return {"command": self._command(), "env": kept_variables(inner.place.env, self._keep)}

    def _part(self, name: str, see: Callable[[], Any]) -> None:
        try:
            self.found[name] = see()
        except Exception as error:
            if len(self.found["troubles"]) < MOST_TROUBLES:
                self.found["troubles"].append("%s: %s: %s" % (name, type(error).__name__, str(error)[:200]))

    def _command(self) -> Dict[str, Any]:
        words, hidden = kept_words(self._words, self._keep)
        return {"words": words, "hidden": hidden, "cwd": self._place.cwd}

    def _see_program(self) -> Optional[Dict[str, Any]]:
        program = self._program = find(self._words, self._place)
        if program is None:
            return None
        if not program.python:
            return {
                "path": program.path,
                "python": False,
                **file_of(program.path),
                "libraries": libraries_beside(program.path),
            }
        python = self._python = packages.python_of(program, self._place)
        return {
            "path": python.path,
            "real": python.real,
            "python": True,
            "version": python.version,
            "script": program.script,
        }

    def _versions(self) -> Optional[Dict[str, str]]:
        if self._python is None:
            return None
        self._packages = packages.installed(self._python.sites)
        return {one.name: one.version for one in self._packages.values()}

    def _files(self) -> Dict[str, Optional[str]]:
        """Hash the small files that the command names (scripts, configurations); by our own key, since they may hold anything."""
        found: Dict[str, Optional[str]] = {}
        itself = self._program.path if self._program else None
        for _, path in paths_named(self._words, self._place, self._hides())[:MOST_NAMED]:
            if path != itself and os.path.isfile(path) and os.path.getsize(path) <= LARGEST_NAMED:
                data = read_small(path, LARGEST_NAMED)
                found[path] = None if data is None else self._keep.digest(data)
        return found

    def _hides(self) -> List[str]:
        """Return the flags whose files are secrets themselves."""
        flags = (word.partition("=")[0] for word in self._words if word.startswith("-"))
        return [flag for flag in flags if self._keep.hides(flag)]

    def _models(self) -> List[Dict[str, Any]]:
        """Look at the models that the tool knows by their flags, and at what else of the command line is one."""
        budget = Budget(*QUICK)
        found: List[Dict[str, Any]] = []
        named = [one for one in self._asked.get("models") or () if isinstance(one, dict)]
        others = [(flag or "word", path) for flag, path in paths_named(self._words, self._place, self._hides())]
        named += [{"what": flag, "given": path} for flag, path in others if models.is_model(path)]
        for one in named[: 2 * MOST_MODELS]:
            told = models.fingerprint(str(one["given"]), one.get("revision"), self._place, budget)
            known = [other["path"] for other in found]
            if len(found) < MOST_MODELS and (told["path"] is None or told["path"] not in known):
                found.append({"what": str(one.get("what", "model")), **told})
        return found

    def _places(self) -> List[str]:
        env = self._place.env
        cache = env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME", "/"), ".cache")
        named = [one.get("path") for one in self.found.get("models") or ()]
        named += [env.get(name) for name in ("HF_HUB_CACHE", "HF_HOME", "TRITON_CACHE_DIR", "VLLM_CACHE_ROOT")]
        named += [cache, env.get("TMPDIR") or "/tmp", "/dev/shm", self._place.cwd, state_folder()]  # noqa: S108
        return [self._place.resolve(one) for one in named if one]

    def _chosen(self) -> List[packages.Package]:
        """Return the packages whose files are looked into: those of the engine, and those that are patched beside it."""
        wanted = [packages.plain_name(name) for name in strings(self._asked.get("packages"))]
        found = [self._packages[name] for name in dict.fromkeys(wanted) if name in self._packages]
        module = module_of(self._words) or (packages.imported_by(self._program.script) if self._program else None)
        own = packages.owner_of(module, self._packages.values()) if module else None
        return [own, *found] if own is not None and own not in found else found

    def _sources(self, chosen: Iterable[packages.Package], budget: Budget) -> Dict[str, Any]:
        told = {one.name: checkout.editable(one, budget) for one in chosen}
        return {name: source for name, source in told.items() if source is not None}


def module_of(words: Sequence[str]) -> Optional[str]:
    """Return the package of `python -m package.module`, or None."""
    at = next((index for index, word in enumerate(words[:-1]) if word == "-m"), None)
    return None if at is None else words[at + 1].partition(".")[0] or None


def file_of(path: str) -> Dict[str, Any]:
    """Return size, time and hash of a binary: of a large one, of its ends."""
    status = os.stat(path)
    whole = whole_sha256(path, WHOLE_BYTES)
    return {
        "real": os.path.realpath(path),
        "size": status.st_size,
        "mtime": int(status.st_mtime),
        "sha256": whole.hex()[:16] if whole else None,
        "ends": None if whole else (ends_sha256(path) or "")[:16],
    }


def libraries_beside(path: str) -> Dict[str, Optional[str]]:
    """Return a hash of the ends of the libraries that lie beside a binary, as llama.cpp ships its own."""
    folder = os.path.dirname(os.path.realpath(path))
    if folder in {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}:
        return {}
    names = sorted(name for name in os.listdir(folder) if ".so" in name)[:MOST_LIBRARIES]
    return {name: (ends_sha256(os.path.join(folder, name)) or "")[:16] or None for name in names}


def strings(value: Any) -> List[str]:
    """Return the texts of a list that came as JSON."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, (list, tuple)) else []
