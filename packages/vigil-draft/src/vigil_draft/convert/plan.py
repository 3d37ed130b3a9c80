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
from vigil_draft.convert.taken_over import taken_over
from vigil_draft.convert.wish import Wish
from vigil_draft.errors import RefusedError
from vigil_draft.formats.configs import Asked, config_for
from vigil_draft.formats.folders import Folder, Stored, read_folder
from vigil_draft.formats.kinds import IDS, format_of
from vigil_draft.formats.meaning import Meaning, meaning_of
from vigil_draft.formats.names import ours, written
from vigil_draft.formats.writing import Source
from vigil_draft.inspect.inspection import eagle3_in

_NEVER_READ = ("rotary_emb.inv_freq",)


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
    source, model, draft = _read(model)
    meaning = meaning_of(draft, format_of(source.config, source.tensors))
    names = {name: one for name, one in ours(source.tensors).items() if not one.endswith(_NEVER_READ)}
    taken = taken_over({one: source.tensors[name] for name, one in names.items()}, draft, target, wish.to)
    asked = _asked(source, draft, meaning, target)
    config = config_for(wish.to, asked)
    here = {one: written(one, wish.to, midlayer=wish.midlayer) for one in taken.tensors}
    tensors = {here[one]: stored for one, stored in taken.tensors.items()}
    why, lost = refusals(wish, msgspec.structs.replace(model, config=config), tensors, draft, meaning)
    why = (*meaning.doubts, *_layers(asked, target, wish.to), *taken.why, *why)
    if why:
        raise RefusedError(tuple(plain(one, 500) for one in why))
    return Plan(
        config=config, tensors=tensors, draft=draft, meaning=meaning, source=source,
        names={here[one]: old for old, one in names.items() if taken.tensors.get(one) is source.tensors[old]},
        notes=(*taken.notes, *(plain(one, 500) for one in lost), *_notes(source, draft, names)),
    )  # fmt: skip


def _read(model: ModelSeen) -> tuple[Folder, ModelSeen, Draft]:
    """Return the source with its config whole (the scout cuts long values), and the draft that it is."""
    eagle3_in(model)  # refuses in one line what is broken, or something else
    source = read_folder(Path(model.path or model.given))
    whole = msgspec.structs.replace(model, config=source.config)
    draft = eagle3_in(whole)
    if draft.quantised:
        raise RefusedError(("only plain drafts are converted, and the tensors of this one are quantised",))
    if not draft.is_llama:
        names = ", ".join(plain(one, 60) for one in architectures(draft.config)) or "?"
        raise RefusedError((f"only Llama drafts are converted, and the class of this one is {names}",))
    if draft.config.get("tie_word_embeddings") is True and "lm_head.weight" not in draft.tensors:
        raise RefusedError(("tie_word_embeddings: its head is its embedding, and no other format says so of a draft",))
    return source, whole, draft


def _asked(source: Folder, draft: Draft, meaning: Meaning, target: ModelSeen | None) -> Asked:
    """Return what the config is written from: a list that is the default of a known target is left out."""
    text = text_part(target.config or {}) if target is not None else {}
    layers = integer(text, "num_hidden_layers")
    default = layers is not None and meaning.boundaries == usual(layers)
    verifier = None
    if target is not None and target.config is not None:
        verifier = {"name_or_path": target.given, "architectures": list(architectures(target.config))}
    head, small = draft.tensors.get("lm_head.weight"), draft.draft_vocabulary
    return Asked(
        flat=draft.config,
        whole=source.config,
        meaning=meaning,
        boundaries=None if default else meaning.boundaries,
        draft_vocabulary=None if head is None and small == integer(draft.config, "vocab_size") else small,
        dtype=head.dtype if head is not None else draft.tensors["fc.weight"].dtype,
        verifier=verifier,
    )


def _layers(asked: Asked, target: ModelSeen | None, to: str) -> list[str]:
    """Refuse a list whose way of counting is not known: for a target with a way of its own, or one by one off the default."""
    if asked.boundaries is None or target is None:
        return []
    config = target.config or {}
    counts_outputs = IDS[asked.meaning.form] != "boundaries"
    own = [one for one in architectures(config) if one.startswith(OWN_WAYS)]
    if own and (to == "sglang" or counts_outputs):
        return [f"layer ids: SGLang counts those of {own[0]} in a way of its own, which is not known here"]
    layers = integer(text_part(config), "num_hidden_layers")
    off = 1 if counts_outputs else -1
    if layers is not None and asked.boundaries == tuple(one + off for one in usual(layers)):
        return [
            f"layer ids: by one they are the default ones of {layers} layers, as others count; leave the list out if so"
        ]
    return []


def _notes(source: Folder, draft: Draft, names: dict[str, str]) -> list[str]:
    found = []
    if draft.config.get("tie_word_embeddings") is True and "lm_head.weight" in draft.tensors:
        found.append("tie_word_embeddings was true, and the draft has a head of its own: it is false now")
    left = [name for name in source.tensors if name not in names]
    if left:
        found.append(f"left out, since no loader reads them: {', '.join(left[:5])}")
    return found
