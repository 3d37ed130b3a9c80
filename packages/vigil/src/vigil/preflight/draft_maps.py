"""Check the maps between a draft's vocabulary and its target's: `d2t`, by which draft ids become target ids, and `t2d`."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.model_config import integer
from vigil.preflight.placing import title
from vigil.preflight.seen_models import MapSeen, ModelSeen

WHOLE = ("I64", "I32")


def check_maps(command: Command, model: ModelSeen, draft: Draft, version: str | None) -> Iterator[Finding]:
    """Find maps that are missing, have another size or kind, or lead to tokens that are not there."""
    maps = {name.rpartition(".")[2]: one for file in model.files for name, one in file.maps.items()}
    small, whole = draft.draft_vocabulary, integer(draft.config, "vocab_size")
    if small is None or whole is None or model.unread:
        return
    offsets = maps.get("d2t")
    if offsets is None:
        if small < whole:
            yield Finding(
                code="DRAFT006",
                severity=Severity.WARNING,
                text=f"{model.given} has {small} of {whole} tokens and no d2t: {title(command, version)} takes its ids for "
                "those of the target without a word, and hardly a token is accepted.",
                advice="Convert the draft again with d2t (int64, target id less draft id).",
            )
        return
    wrong = _wrong(offsets, small, whole)
    if wrong:
        yield Finding(
            code="DRAFT001",
            severity=Severity.FATAL,
            text=f"d2t of {model.given} {wrong}.",
            advice="Write it again: int64, one number for each of the draft's tokens, target id less draft id.",
        )
        return
    yield from _mask(model, maps.get("t2d"), small, whole)


def _wrong(offsets: MapSeen, small: int, whole: int) -> str:
    """Return in words what is wrong with d2t; what is proposed would then end the server, or be any token."""
    if offsets.dtype not in WHOLE:
        return f"has the type {offsets.dtype}: ids must be whole numbers (I64)"
    if offsets.shape != (small,):
        return f"has the shape {' x '.join(map(str, offsets.shape))}, and draft_vocab_size is {small}"
    if (
        offsets.lowest_moved is None
        or offsets.highest_moved is None
        or offsets.lowest is None
        or offsets.highest is None
    ):
        return ""
    if offsets.lowest_moved >= 0 and offsets.highest_moved < whole:
        return ""
    text = f"leads to the tokens {offsets.lowest_moved} to {offsets.highest_moved}, and the target has 0 to {whole - 1}"
    if offsets.lowest >= 0 and offsets.highest < whole:
        text += ": it holds target ids, where offsets are wanted (target id less draft id)"
    return text


def _mask(model: ModelSeen, mask: MapSeen | None, small: int, whole: int) -> Iterator[Finding]:
    """Find a t2d that does not go with d2t; engines pass it over, trainers and converters do not."""
    if mask is None:
        return
    wrong = ""
    if mask.shape != (whole,):
        wrong = f"has the shape {' x '.join(map(str, mask.shape))}, and the vocabulary {whole} tokens"
    elif mask.dtype in {"BOOL", "U8"} and mask.total is not None and mask.total != small:
        wrong = f"marks {mask.total} tokens, and draft_vocab_size is {small}"
    if not wrong:
        return
    yield Finding(
        code="DRAFT006",
        severity=Severity.NOTE,
        text=f"t2d of {model.given} {wrong}: engines pass it over, but the maps are not of one make.",
        advice="Look where the draft was converted.",
    )
