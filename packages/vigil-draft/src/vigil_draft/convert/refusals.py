"""Why a draft is not converted: what the engine that would read the result would end at, drop, invent or misread of it.

The result is judged as `vigil check` would judge it, before a byte of it is written; what is added here is what a format itself
cannot say.
"""

import msgspec

from vigil.preflight.draft_kind import Draft
from vigil.preflight.finding import Severity
from vigil.preflight.judge_draft import judge_draft
from vigil.preflight.releases import tables
from vigil.preflight.seen_models import ModelSeen, TensorSeen
from vigil_draft.convert.wish import Wish
from vigil_draft.formats.meaning import Meaning
from vigil_draft.formats.writing import Source

COUNTED = 3
"""The inputs of fc that vLLM counts where eagle_config has no list."""
LAST_OF_MIDLAYER = "0.5.10"
"""Of the table of SGLang the last release that knows `midlayer` alone."""


LOSSES = ("DRAFT002", "DRAFT005")
"""What an engine drops or does not read: the draft is loaded, computes something else, and may be wanted so."""


def refusals(
    wish: Wish, result: ModelSeen, tensors: dict[str, Source], draft: Draft, meaning: Meaning
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return why the result may not be written, and what is lost in it but wanted so, one finding a line."""
    seen = {
        name: TensorSeen(dtype=one.dtype, shape=one.shape)
        if not isinstance(one, tuple)
        else TensorSeen(dtype=one[0], shape=one[1])
        for name, one in tensors.items()
    }
    model = msgspec.structs.replace(result, tensors=seen, pickles=(), index=None)
    engine = "sglang" if wish.to == "sglang" else "vllm"
    release = LAST_OF_MIDLAYER if wish.midlayer and engine == "sglang" else tables()[engine].releases[-1]
    found = [one for one in judge_draft(engine, release, model, None) if one.severity is not Severity.NOTE]
    own = _of_speculators(draft, meaning) if wish.to == "speculators" else []
    if wish.to == "speculators":
        # What vLLM counts otherwise than speculators says is vLLM's: `inspect` names it.
        found = [one for one in found if not (one.code == "SHAPE001" and meaning.inputs != COUNTED)]
    lost = [one for one in found if wish.anyway and one.severity is Severity.WARNING and one.code in LOSSES]
    why = (*own, *(f"{one.code}: {one.text} {one.advice}".strip() for one in found if one not in lost))
    return why, tuple(f"written anyway: {one.code}: {one.text}" for one in lost)


def _of_speculators(draft: Draft, meaning: Meaning) -> list[str]:
    """Return what speculators 0.9.0 has no words for."""
    found = []
    if draft.hidden_size != draft.target_hidden_size:
        found.append(
            f"hidden_size {draft.hidden_size} beside target_hidden_size {draft.target_hidden_size}: speculators wants both equal "
            "(eagle3/core.py: ValueError)"
        )
    if {"norm_before_fc", "fc_norm"} <= meaning.norms:
        found.append("norm_before_fc and fc_norm: speculators takes one of them (Eagle3SpeculatorConfig)")
    if "fc.bias" in draft.tensors:
        found.append("fc.bias: the fc of speculators has none")
    return found
