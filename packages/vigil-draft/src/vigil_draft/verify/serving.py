"""The command that serves a target with a draft, and what could be the reason where it does badly."""

import json
from pathlib import Path
from typing import Any

import msgspec

from vigil.errors import VigilError
from vigil.preflight.finding import Severity
from vigil_draft.data.starting import starting
from vigil_draft.data.template import Target
from vigil_draft.errors import DraftError, NotADraftError
from vigil_draft.formats.folders import read_json
from vigil_draft.formats.provenance import MOST_BYTES, NAME
from vigil_draft.inspect.inspection import RELEASES, inspect

SAME = {
    "template_sha256": "another chat template",
    "tokenizer_sha256": "another tokenizer",
    "config_sha256": "another config of the target",
}


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """What is served. `program`: what stands before the target, else the engine's usual one; `more`: flags of the user's."""

    engine: str
    target: str
    draft: str
    steps: int
    program: str | None = None
    more: tuple[str, ...] = ()

    def command(self, port: int) -> tuple[str, ...]:
        """Return the command line; raise `UsageError` for an engine without EAGLE-3, or quotes that are open."""
        words = (self.target, "--port", str(port), *self._speculation(), *self.more)
        return starting(self.engine, self.program, words)

    def _speculation(self) -> list[str]:
        if self.engine == "vllm":
            asked = {"method": "eagle3", "model": self.draft, "num_speculative_tokens": self.steps}
            return ["--speculative-config", json.dumps(asked)]
        return [
            "--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", self.draft,
            "--speculative-num-steps", str(self.steps), "--speculative-eagle-topk", "1",
            "--speculative-num-draft-tokens", str(self.steps + 1), "--enable-metrics",
        ]  # fmt: skip


def findings(draft: str, target: str, engine: str, version: str | None) -> tuple[str, ...]:
    """Return what `vigil draft inspect` finds wrong for an engine: of its version, else of the newest that is known.

    A draft that it cannot read at all is a finding, too: the engine decides what becomes of it.
    """
    newest = next(one for name, one in reversed(RELEASES) if name == engine)
    try:
        found = inspect(draft, target, ((engine, version or newest),))
    except VigilError as error:
        return (str(error),)
    return tuple(f"{one.code}: {one.text}" for one in found.readings[-1].findings if one.severity is not Severity.NOTE)


def differences(draft: Path, target: Target, temperature: float) -> tuple[str, ...]:
    """Return in what the draft's training differs from this serving, as far as its provenance tells."""
    try:
        told = read_json(draft / NAME, MOST_BYTES)
    except (DraftError, NotADraftError):
        return ()
    here = target.origin()
    found = []
    for name, words in SAME.items():
        was = _held(told, name)
        if isinstance(was, str) and name in here and was != here[name]:
            found.append(f"its training data was made with {words} than {target.folder} has")
    was = _held(told, "temperature")
    if isinstance(was, int | float) and was != temperature:
        found.append(f"its training data was answered at temperature {was:g}, and it is asked at {temperature:g} here")
    return tuple(found)


def _held(told: Any, name: str, depth: int = 8) -> Any:
    """Return the first value of a name, however deep it stands."""
    if not isinstance(told, dict) or not depth:
        return None
    if name in told:
        return told[name]
    return next((held for one in told.values() if (held := _held(one, name, depth - 1)) is not None), None)
