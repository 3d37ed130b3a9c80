"""What a draft shares with its target: embedding and head, dropped where they are not needed, taken over where they are.

SGLang puts the target's embedding in the place of the draft's where both are equally wide (0.5.23: llama.py, set_embed); vLLM
0.32 keeps the draft's own; speculators 0.9.0 ships one, and both maps between the vocabularies or none.
"""

import struct
from pathlib import Path

import msgspec

from vigil.preflight.draft_kind import Draft
from vigil.preflight.model_config import integer, text_part
from vigil.preflight.seen_models import ModelSeen
from vigil.screen import plain
from vigil_draft.errors import RefusedError
from vigil_draft.formats.folders import Folder, Stored, read_folder
from vigil_draft.formats.writing import Source, bytes_of, parts_of

EMBEDDING, HEAD, OFFSETS, MASK = "embed_tokens.weight", "lm_head.weight", "d2t", "t2d"
MOST_TOKENS = 1 << 20
_WHOLE = {"I64": "q", "I32": "i"}


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The tensors by our names, and what was done. `why`: why it cannot be, a line each."""

    tensors: dict[str, Source]
    notes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


def taken_over(stored: dict[str, Stored], draft: Draft, target: ModelSeen | None, to: str) -> Taken:
    """Return the tensors of the draft as a format needs them."""
    tensors: dict[str, Source] = dict(stored)
    notes: list[str] = []
    why: list[str] = []
    shared = _Target(target, draft)
    if to == "sglang":
        _drop(tensors, shared, draft, notes, why)
    if to == "speculators":
        _take(tensors, shared, notes, why)
        _mask(tensors, draft, notes)
    return Taken(tensors=tensors, notes=tuple(notes), why=tuple(why))


class _Target:
    """The target's tensors, read when they are first asked for."""

    def __init__(self, seen: ModelSeen | None, draft: Draft) -> None:
        self.seen, self._draft = seen, draft
        self._folder: Folder | None = None

    def shared(self, name: str) -> tuple[Stored | None, str]:
        """Return the target's tensor that would stand for one of the draft's, or None and why not."""
        if self.seen is None or self.seen.path is None:
            return None, "the target's is wanted: give --target MODEL"
        if self._folder is None:
            self._folder = read_folder(Path(self.seen.path))
        names = [one for one in self._folder.tensors if one.endswith(name)]
        if not names and name == HEAD and text_part(self.seen.config or {}).get("tie_word_embeddings") is True:
            names = [one for one in self._folder.tensors if one.endswith(EMBEDDING)]
        if len(names) != 1:
            return None, f"{plain(self.seen.given, 120)} has {len(names)} tensors of that name"
        found, wide = self._folder.tensors[names[0]], self._draft.hidden_size
        wanted = (integer(self._draft.config, "vocab_size"), wide)
        if None not in wanted and found.shape != wanted:
            return (
                None,
                f"that of {plain(self.seen.given, 120)} is {_by(found.shape)}, and the draft needs {_by(wanted)}",
            )
        return found, ""


def _by(shape: tuple[int | None, ...]) -> str:
    return " x ".join(map(str, shape))


def _drop(tensors: dict[str, Source], target: _Target, draft: Draft, notes: list[str], why: list[str]) -> None:
    """Drop an embedding that is the target's own; refuse one that was trained, since SGLang would put the target's there."""
    own = tensors.get(EMBEDDING)
    if own is None or draft.hidden_size != draft.target_hidden_size:
        return
    trained = draft.config.get("embed_requires_grad") is True
    theirs = target.shared(EMBEDDING)[0] if target.seen is not None else None
    if theirs is None:
        if trained:
            why.append(f"{EMBEDDING}: it was trained (embed_requires_grad), and SGLang puts the target's in its place")
        else:
            notes.append(
                f"{EMBEDDING} stays, and SGLang puts the target's in its place: with --target it is compared and dropped"
            )
    elif _same(own, theirs):
        del tensors[EMBEDDING]
        notes.append(f"{EMBEDDING} is the target's own, byte for byte, and was dropped: SGLang takes it from there")
    else:
        why.append(f"{EMBEDDING}: it is not the target's, and SGLang puts the target's in its place")


def _same(one: Source, other: Source) -> bool:
    """Tell whether two tensors have the same bytes; both are read in pieces of one size."""
    if bytes_of(one) != bytes_of(other):
        return False
    return all(mine == theirs for mine, theirs in zip(parts_of(one), parts_of(other), strict=True))


def _take(tensors: dict[str, Source], target: _Target, notes: list[str], why: list[str]) -> None:
    """Take embedding and head over from the target where the draft has none."""
    for name in (EMBEDDING, HEAD):
        if name in tensors:
            continue
        found, trouble = target.shared(name)
        if found is None:
            why.append(f"{name}: it is not in the draft, and speculators ships it; {trouble}")
        else:
            tensors[name] = found
            notes.append(f"{name} was taken over from the target ({found.dtype} {_by(found.shape)})")


def _mask(tensors: dict[str, Source], draft: Draft, notes: list[str]) -> None:
    """Make t2d of d2t where it is missing: speculators wants both maps or none."""
    offsets, whole = tensors.get(OFFSETS), integer(draft.config, "vocab_size")
    if not isinstance(offsets, Stored) or MASK in tensors or whole is None:
        return
    form, count = _WHOLE.get(offsets.dtype), offsets.shape[0] if len(offsets.shape) == 1 else 0
    if form is None or not 0 < count <= whole <= MOST_TOKENS:
        raise RefusedError((f"{OFFSETS}: {offsets.dtype} {_by(offsets.shape)} is no map of {whole} tokens",))
    mask = bytearray(whole)
    for place, offset in enumerate(struct.unpack(f"<{count}{form}", b"".join(parts_of(offsets)))):
        if not 0 <= place + offset < whole:
            raise RefusedError(
                (f"{OFFSETS}: it leads to the token {place + offset}, and the target has 0 to {whole - 1}",)
            )
        mask[place + offset] = 1
    tensors[MASK] = ("BOOL", (whole,), bytes(mask))
    notes.append(f"{MASK} was made of {OFFSETS}: speculators wants both")
