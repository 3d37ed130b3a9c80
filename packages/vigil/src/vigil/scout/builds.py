"""See whether the engine that would run knows a model: by the files of its package, in its interpreter, without running it."""

import os
import re
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from ..survey.interpreter import Program, find
from ..survey.packages import python_of
from . import registry
from .pieces import Shape, piece, shape_of
from .remembered import Remembered

if TYPE_CHECKING:
    from .desk import Question

MOST_FILES = 2000
TEXT_BYTES = 2 << 20
_NAME = re.compile(r"\w[\w.-]{0,100}\Z")


class Build:
    """The engine of a command. What is None could not be seen; of llama-server `llama_names` sees it."""

    def __init__(self, question: "Question") -> None:
        self._engine = question.engine
        self.version: Optional[str] = None
        self._package = ""
        self._sites: List[str] = []
        program = find(question.words, question.place) if question.engine in {"sglang", "vllm"} else None
        if program is not None and program.python:
            self._locate(program, question)
        self._registry: Optional[Dict[str, Any]] = self._read() if self._package else None

    def _locate(self, program: Program, question: "Question") -> None:
        self._sites = python_of(program, question.place).sites
        for site in self._sites:
            package = os.path.join(site, self._engine)
            if not os.path.isdir(registry.folder_of(self._engine, package)):
                continue
            self._package = package
            start, ending = self._engine + "-", ".dist-info"
            names = [one for one in os.listdir(site) if one.startswith(start) and one.endswith(ending)]
            self.version = names[0][len(start) : -len(ending)] if len(names) == 1 else None
            return

    def _read(self) -> Dict[str, Any]:
        """Return the registry, from what is remembered where no file of its folder has changed."""
        folder = registry.folder_of(self._engine, self._package)
        shapes = [shape_of(os.path.join(folder, one)) for one in os.listdir(folder)[:MOST_FILES] if one.endswith(".py")]
        there = [one for one in shapes if one is not None]
        whole = Shape(sum(one.size for one in there), max((one.mtime_ns for one in there), default=0), regular=True)
        memory = Remembered(folder)
        known = memory.recall("registry", whole)
        if known is None:
            found = registry.read(self._engine, self._package)
            known = {"aux": found.aux, "draft_reads": found.draft_reads}
            memory.keep("registry", whole, known)
            memory.save()
        return dict(known)

    def of(self, config: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
        """Return what the build says of a model with this config, None where there is no build to ask."""
        if self._registry is None:
            return None
        names = config.get("architectures") if config else None
        names = [one for one in names if isinstance(one, str)][:8] if isinstance(names, list) else []
        aux = self._registry["aux"]
        return {
            "version": self.version,
            "known": [one for one in names if one in aux],
            "aux": next((aux[one] for one in names if one in aux), None),
            "draft_reads": self._registry["draft_reads"],
            "by_transformers": self._in_transformers(names),
            "type_known": self._type_known((config or {}).get("model_type")),
        }

    def _in_transformers(self, names: List[str]) -> Optional[bool]:
        """Tell whether transformers has one of these architectures, which both engines fall back to."""
        text = self._auto("modeling_auto.py")
        return None if not text else any(b'"%s"' % one.encode() in text for one in names)

    def _type_known(self, kind: Any) -> Optional[bool]:
        """Tell whether transformers or the engine has a config of this model_type."""
        text = self._auto("configuration_auto.py") + self._auto("auto_mappings.py")
        if not text or not isinstance(kind, str) or not _NAME.match(kind):
            return None
        named = re.compile(rb"[\"']%s[\"']|\b%s\s*=\s*\"" % (re.escape(kind.encode()), re.escape(kind.encode())))
        return bool(named.search(text)) or any(
            named.search(piece(one, 0, TEXT_BYTES) or b"") for one in self._configs()
        )

    def _auto(self, name: str) -> bytes:
        for site in self._sites:
            data = piece(os.path.join(site, "transformers", "models", "auto", name), 0, TEXT_BYTES)
            if data:
                return data
        return b""

    def _configs(self) -> List[str]:
        below = (
            "transformers_utils",
            "transformers_utils/configs",
            "srt/configs",
            "srt/utils",
            "srt/utils/hf_transformers",
        )
        found: List[str] = []
        for one in below:
            folder = os.path.join(self._package, one)
            if os.path.isdir(folder):
                found += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
        return found[:MOST_FILES]
