"""Read which architectures an engine's own files serve, and which of them hand out hidden states to an EAGLE-3 draft.

Nothing is imported or run: the classes' names, bases and imports are read out of the text (SGLang: `EntryClass` of each module of
`sglang/srt/models`; vLLM: the tables of `vllm/model_executor/models/registry.py`). Used on a host for the engine that is
installed, and by `docs/releases.py` for releases.
"""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

FILE_BYTES = 1 << 20
MOST_FILES = 1500
DEEPEST = 8
_CLASS = re.compile(r"^class (\w+)[ \t]*(?:\(([^)]*)\))?:", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*from ([\w.]+) import (?:\(([^)]*)\)|([^\n(]+))", re.MULTILINE)
_ENTRY = re.compile(r"^EntryClass\b[^=\n]*=\s*(\[[^\]]*\]|\w+)", re.MULTILINE)
_ROW = re.compile(r'"(\w+)":\s*\(\s*"([\w.]+)",\s*"(\w+)",?\s*\)')
_PLAIN_BASES = frozenset({"object", "Protocol", "ABC", "Generic", "Enum", "dict", "list", "tuple"})
_WORD = re.compile(r"[\w.]+")
# What a release reads in a draft's config and calls its parts: words of `llama_eagle3.py`.
READS = (
    "self.midlayer", "self.layers", "midlayer", "num_aux_hidden_states", "norm_before_fc", "fc_norm", "norm_output",
    "norm_before_residual", "attention_bias", "use_aux_hidden_state", "load_lm_head_from_target", "target_hidden_size",
)  # fmt: skip


class Registry(NamedTuple):
    """What a release serves. `aux`: whether a class hands out hidden states, None where its text does not tell."""

    aux: Dict[str, Optional[bool]]
    draft_reads: List[str]


class _Module(NamedTuple):
    """One file: its classes with their bases and text, and where the names that it imports come from."""

    classes: Dict[str, Tuple[List[str], str]]
    imports: Dict[str, Tuple[str, str]]
    entries: List[str]


def folder_of(engine: str, package: str) -> str:
    """Return the folder of an engine's models below its package."""
    return os.path.join(package, *(("srt", "models") if engine == "sglang" else ("model_executor", "models")))


def read(engine: str, package: str) -> Registry:
    """Return what the engine whose package lies in a folder serves."""
    folder = folder_of(engine, package)
    walk = _Walk(engine, package)
    if engine == "sglang":
        names = [one[:-3] for one in sorted(os.listdir(folder)) if one.endswith(".py")][:MOST_FILES]
        modules = [("sglang.srt.models." + one, walk.module("sglang.srt.models." + one)) for one in names]
        rows = [(entry, name, entry) for name, module in modules if module is not None for entry in module.entries]
    else:
        found = _ROW.findall(_text(os.path.join(folder, "registry.py")))
        rows = [(arch, one if "." in one else "vllm.model_executor.models." + one, name) for arch, one, name in found]
    text = _text(os.path.join(folder, "llama_eagle3.py"))
    return Registry(
        {arch: walk.hands_out(module, name) for arch, module, name in rows}, [one for one in READS if one in text]
    )


class _Walk:
    """Reads modules, each once, and follows classes to their bases."""

    def __init__(self, engine: str, package: str) -> None:
        self._root = os.path.dirname(package)
        self._ours = os.path.basename(package) + "."
        self._mark = "def set_eagle3_layers_to_capture" if engine == "sglang" else "supports_eagle3"
        self._base = "SupportsEagle3"
        self._known: Dict[str, Optional[_Module]] = {}

    def module(self, name: str) -> Optional[_Module]:
        """Return one module, None where it is not there."""
        if name not in self._known:
            path = os.path.join(self._root, *name.split("."))
            text = _text(path + ".py") or _text(os.path.join(path, "__init__.py"))
            self._known[name] = _module(text, name) if text else None
        return self._known[name]

    def hands_out(self, module: str, name: str) -> Optional[bool]:
        """Tell whether a class, or one that it is made from, hands out hidden states."""
        return self._follow(module, name, set())

    def _follow(self, module: str, name: str, seen: Set[Tuple[str, str]]) -> Optional[bool]:
        if name == self._base:
            return True
        if (module, name) in seen or len(seen) > DEEPEST * 8:
            return False
        seen.add((module, name))
        if name in _PLAIN_BASES:
            return False
        if not module.startswith(self._ours):
            return None if not module else False  # a base that is neither here nor imported: the text does not tell
        there = self.module(module)
        if there is None:
            return None
        if name not in there.classes:
            origin = there.imports.get(name)
            return None if origin is None else self._follow(origin[0], origin[1], seen)
        bases, text = there.classes[name]
        if self._mark in text:
            return True
        told = [self._follow(*self._where(there, module, base), seen) for base in bases]
        return True if True in told else None if None in told else False

    def _where(self, there: _Module, module: str, base: str) -> Tuple[str, str]:
        """Return the module and name of a base; one that is written with a dot is taken for no model."""
        first, dot, last = base.rpartition(".")
        if dot:
            return first, last
        return (module, base) if base in there.classes else there.imports.get(base, ("", base))


def _module(text: str, name: str) -> _Module:
    starts = list(_CLASS.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    classes: Dict[str, Tuple[List[str], str]] = {}
    for start, end in zip(starts, ends):  # noqa: B905 - Python 3.9 has no strict=
        bases = _WORD.findall(re.sub(r"\[[^\]]*\]|\w+=[^,]*", "", start.group(2) or ""))
        # Of two classes of one name (one for type checkers) both count.
        before = classes.get(start.group(1), ([], ""))
        classes[start.group(1)] = (before[0] + bases, before[1] + text[start.start() : end])
    imports: Dict[str, Tuple[str, str]] = {}
    for origin, several, one in _IMPORT.findall(text):
        for part in re.sub(r"#[^\n]*", "", several or one).split(","):
            words = part.split()
            if words:
                imports[words[-1]] = (_absolute(origin, name), words[0])
    entries = [word for found in _ENTRY.findall(text) for word in _WORD.findall(re.sub(r"#[^\n]*", "", found))]
    return _Module(classes, imports, [one for one in entries if one in classes or one in imports])


def _absolute(origin: str, name: str) -> str:
    dots = len(origin) - len(origin.lstrip("."))
    if not dots:
        return origin
    return ".".join([*name.split(".")[:-dots], origin[dots:]]).rstrip(".")


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
