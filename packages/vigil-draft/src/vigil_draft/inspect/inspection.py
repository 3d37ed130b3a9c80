"""Look at a draft: its format, its tensors against its config, its conventions, and what releases of engines make of it."""

from pathlib import Path
from typing import Any

import msgspec

from vigil.preflight.check_files import check_files
from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft, draft_from
from vigil.preflight.draft_tensors import shape_by_config
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.judge_draft import ENGINES, judge_draft, look_at, nearest
from vigil.preflight.model_config import integer, text_part
from vigil.preflight.placing import TITLES
from vigil.preflight.seen_models import ModelSeen
from vigil.screen import plain
from vigil_draft.errors import DraftError, NotADraftError
from vigil_draft.formats import provenance
from vigil_draft.formats.kinds import format_of
from vigil_draft.formats.meaning import meaning_of
from vigil_draft.formats.words import words_of

RELEASES = (
    ("sglang", "0.4.9"), ("sglang", "0.5.10"), ("sglang", "0.5.17"), ("sglang", "0.5.23"),
    ("vllm", "0.10"), ("vllm", "0.20"), ("vllm", "0.33"),
)  # fmt: skip
"""What is judged where no other is asked for: old servers that are still met, and the newest."""
_WHAT_IT_IS = {
    "eagle": "a draft of EAGLE 1 or 2",
    "model": "a model of its own",
    "other": "a draft of another kind",
    "": "no draft that is known",
}


class TensorTold(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor. `by_config`: the shape that its config says, None where that is not known."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    by_config: tuple[int | None, ...] | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one release makes of the draft. `asked`: the version that was asked for; `release`: that of the table that answers."""

    engine: str
    asked: str
    release: str
    findings: tuple[Finding, ...]

    @property
    def loads(self) -> bool:
        """Whether the server would come up with it."""
        return not any(one.severity is Severity.FATAL for one in self.findings)

    @property
    def as_trained(self) -> bool:
        """Whether it computes what was trained."""
        return not any(one.severity is not Severity.NOTE for one in self.findings)


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """All that is told of a draft. `doubts`: what its config may mean otherwise, a line each."""

    schema: int = 1
    path: str
    format: str
    conventions: dict[str, str]
    doubts: tuple[str, ...]
    tensors: tuple[TensorTold, ...]
    weights_bytes: int
    readings: tuple[Reading, ...]
    provenance: dict[str, Any] | None = None


def inspect(path: str, target: str | None, wanted: tuple[tuple[str, str], ...] = RELEASES) -> Inspection:
    """Return what a draft is, and what the wanted engines and versions make of it; headers are read, no data, no pickle.

    Raises:
        NotADraftError: It is something else than an EAGLE-3 draft.
        DraftError: A file of it is broken.

    """
    model, served = look_at(path, target)
    draft = eagle3_in(model)
    if target is not None and (served is None or served.config is None):
        raise NotADraftError(f"--target {plain(target, 200)}: no folder with a config.json is there")
    form = format_of(model.config or {}, model.tensors or ())
    meaning = meaning_of(draft, form)
    told = provenance.provenance_of(Path(model.path or path))
    layers = integer(text_part(served.config or {}), "num_hidden_layers") if served is not None else None
    conventions = {**words_of(draft, meaning, layers), "provenance": provenance.words_of(told)}
    return Inspection(
        path=model.path or path,
        format=form,
        conventions=conventions,
        doubts=meaning.doubts,
        tensors=tuple(_tensors(model, draft)),
        weights_bytes=model.weights_bytes,
        readings=tuple(_reading(engine, version, model, served) for engine, version in wanted),
        provenance=told,
    )


def eagle3_in(model: ModelSeen) -> Draft:
    """Return the EAGLE-3 draft that was seen in a folder.

    Raises:
        NotADraftError: There is none, or it is something else.
        DraftError: A file of it is broken.

    """
    given = plain(model.given, 200)
    if model.path is None or model.kind != "folder":
        raise NotADraftError(f"{given} is no folder: name the one that holds the draft's config.json")
    broken = next(
        (
            one
            for one in check_files(Command(words=(), own=0, engine="sglang"), model)
            if one.severity is Severity.FATAL
        ),
        None,
    )
    if broken is not None:
        raise DraftError(plain(broken.text, 500))
    if model.config is None:
        raise NotADraftError(f"{given}: {model.config_trouble or 'it has no config.json'}")
    if not model.files:
        pickles = ", ".join(model.pickles[:3])
        raise NotADraftError(f"{given} holds pickles alone ({pickles}): they are never loaded")
    draft = draft_from(model)
    if draft is None or draft.kind != "eagle3":
        what = _WHAT_IT_IS.get(draft.kind if draft is not None else "", "no draft")
        raise NotADraftError(f"{given} is {what}: EAGLE-3 drafts alone are known here")
    if not draft.tensors:
        raise NotADraftError(f"{given} has more tensors than any EAGLE-3 draft, or their headers were not read")
    return draft


def _tensors(model: ModelSeen, draft: Draft) -> list[TensorTold]:
    return [
        TensorTold(
            name=name,
            dtype=one.dtype,
            shape=one.shape,
            by_config=shape_by_config(name.removeprefix("model."), draft) if draft.is_llama or draft.is_qwen3 else None,
        )
        for name, one in sorted((model.tensors or {}).items())
    ]


def _reading(engine: str, version: str, model: ModelSeen, target: ModelSeen | None) -> Reading:
    release = nearest(engine, version)
    return Reading(
        engine=engine, asked=version, release=release, findings=tuple(judge_draft(engine, release, model, target))
    )


def known(engine: str) -> bool:
    """Tell whether an engine takes EAGLE-3 drafts, and its loaders are known."""
    return engine in ENGINES and engine in TITLES
