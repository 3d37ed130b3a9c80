"""Plan a conversion: what the new folder would hold, and why it may not be written. Only headers and the small maps are read."""

from pathlib import Path
from typing import Any

import msgspec

from vigil.preflight.draft_kind import Draft
from vigil.preflight.draft_layers import OWN_WAYS, usual
from vigil.preflight.model_config import architectures, integer, text_part
from vigil.preflight.seen_models import ModelSeen
from vigil.screen import plain
from vigil_draft.convert.refusals import refusals
from vigil_draft.convert.taken_over import Taken, taken_over
from vigil_draft.errors import RefusedError
from vigil_draft.formats.configs import Asked, config_for
from vigil_draft.formats.folders import Folder, Stored, read_folder
from vigil_draft.formats.kinds import format_of
from vigil_draft.formats.meaning import Meaning, meaning_of
from vigil_draft.formats.names import ours, written
from vigil_draft.formats.writing import Source
from vigil_draft.inspect.inspection import eagle3_in

_NEVER_READ = ("rotary_emb.inv_freq",)


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is wished for: the format, and whether its first layer is named `midlayer`, as servers from before 0.5.12 have it."""

    to: str
    midlayer: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the new folder holds. `names`: of each tensor its name in the source. `notes`: what is to be known, a line each."""

    config: dict[str, Any]
    tensors: dict[str, Source]
    names: dict[str, str]
    draft: Draft
    meaning: Meaning
    source: Folder
    notes: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """How many bytes its tensors have."""
        return sum(one.bytes if isinstance(one, Stored) else len(one[2]) for one in self.tensors.values())


def plan(model: ModelSeen, target: ModelSeen | None, wish: Wish) -> Plan:
    """Return what is to be written.

    Raises:
        RefusedError: The other format cannot say it.
        NotADraftError: The source is no EAGLE-3 draft.
        DraftError: A file is broken.

    """
    eagle3_in(model)  # refuses in one line what is broken, or something else
    source = read_folder(Path(model.path or model.given))
    model = msgspec.structs.replace(model, config=source.config)  # the scout cuts long values
    draft = eagle3_in(model)
    meaning = meaning_of(draft, format_of(source.config, source.tensors))
    if not draft.is_llama or draft.quantised:
        what = (
            "its tensors are quantised"
            if draft.quantised
            else f"its class is {', '.join(architectures(draft.config)) or '?'}"
        )
        raise RefusedError((f"only plain Llama drafts are converted, and {what}",))
    names = {name: one for name, one in ours(source.tensors).items() if not one.endswith(_NEVER_READ)}
    taken = taken_over({one: source.tensors[name] for name, one in names.items()}, draft, target, wish.to)
    asked = _asked(source, draft, meaning, target)
    config = config_for(wish.to, asked)
    tensors = {written(name, wish.to, midlayer=wish.midlayer): one for name, one in taken.tensors.items()}
    why = refusals(wish, msgspec.structs.replace(model, config=config), tensors, draft, meaning)
    why = (*meaning.doubts, *_layers(asked, target, wish.to), *taken.why, *why)
    if why:
        raise RefusedError(tuple(plain(one, 500) for one in why))
    origins = {
        name: next((old for old, one in names.items() if written(one, wish.to, midlayer=wish.midlayer) == name), "")
        for name in tensors
    }
    return Plan(
        config=config, tensors=tensors, names=origins, draft=draft, meaning=meaning, source=source,
        notes=(*taken.notes, *_notes(source, draft, names)),
    )  # fmt: skip


def _asked(source: Folder, draft: Draft, meaning: Meaning, target: ModelSeen | None) -> Asked:
    """Return what the config is written from: a list that is the default of a known target is left out."""
    text = text_part(target.config or {}) if target is not None else {}
    layers = integer(text, "num_hidden_layers")
    default = layers is not None and meaning.boundaries == usual(layers)
    verifier = None
    if target is not None and target.config is not None:
        verifier = {"name_or_path": target.given, "architectures": list(architectures(target.config))}
    head = draft.tensors.get("lm_head.weight")
    return Asked(
        flat=draft.config,
        whole=source.config,
        meaning=meaning,
        boundaries=None if default else meaning.boundaries,
        draft_vocabulary=draft.draft_vocabulary if head is not None else None,
        dtype=head.dtype if head is not None else draft.tensors["fc.weight"].dtype,
        verifier=verifier,
    )


def _layers(asked: Asked, target: ModelSeen | None, to: str) -> list[str]:
    """Refuse a list of layers for a target whose class counts them in a way of its own."""
    names = architectures((target.config if target is not None else None) or {})
    own = [one for one in names if one.startswith(OWN_WAYS)]
    if (
        asked.boundaries is not None
        and own
        and "sglang" in {to, asked.meaning.form, *_LIKE_SGLANG.get(asked.meaning.form, ())}
    ):
        return [f"layer ids: SGLang counts those of {own[0]} in a way of its own, which is not known here"]
    return []


_LIKE_SGLANG = {"specforge": ("sglang",), "original": ("sglang",)}


def _notes(source: Folder, draft: Draft, names: dict[str, str]) -> list[str]:
    found = []
    if draft.config.get("tie_word_embeddings") is True and "lm_head.weight" in draft.tensors:
        found.append("tie_word_embeddings was true, and the draft has a head of its own: it is false now")
    left = [name for name in source.tensors if name not in names]
    if left:
        found.append(f"left out, since no loader reads them: {', '.join(left[:5])}")
    return found


__all__ = ["Plan", "Taken", "Wish", "plan"]
