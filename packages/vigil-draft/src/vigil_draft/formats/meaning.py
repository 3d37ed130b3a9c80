"""What a draft's config means, whoever wrote it: layers as boundaries, norms as what they do. With what cannot be known of it.

A boundary k is the state after k layers. Read in SGLang 0.5.23 (set_eagle3_layers_to_capture adds one to each id), vLLM 0.32
(ids as they are), speculators 0.9.0 and SpecForge 0.2.0.
"""

import msgspec

from vigil.preflight.draft_kind import Draft
from vigil.preflight.draft_layers import usual
from vigil.preflight.draft_settings import asks
from vigil_draft.formats.kinds import IDS, TITLES

NORMS = ("norm_before_residual", "norm_before_fc", "fc_norm", "norm_output")


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """A draft's config in our terms. `boundaries` None: the default ones. `doubts`: what it may mean otherwise, a line each.

    `inputs`: from how many layers it is fed. `norms`: those of `NORMS` that it was trained with.
    """

    form: str
    boundaries: tuple[int, ...] | None
    inputs: int
    norms: frozenset[str]
    doubts: tuple[str, ...] = ()

    def boundaries_of(self, layers: int | None) -> tuple[int, ...] | None:
        """Return the boundaries for a target of so many layers, None where these are not known."""
        return usual(layers) if self.boundaries is None and layers is not None else self.boundaries


def meaning_of(draft: Draft, form: str) -> Meaning:
    """Return what a draft of a format means."""
    boundaries, doubts = _boundaries(draft, form)
    norms = frozenset(one for one in NORMS if _is_on(draft, one, form))
    if form in {"original", "specforge"} and isinstance(draft.config.get("norm_output"), bool):
        doubts.append(
            f"norm_output {str(draft.config['norm_output']).lower()}: to SpecForge it is the norm before the head, to "
            "every engine what the next step is given"
        )
    return Meaning(form=form, boundaries=boundaries, inputs=draft.inputs, norms=norms, doubts=tuple(doubts))


def _is_on(draft: Draft, name: str, form: str) -> bool:
    if name == "fc_norm" and form in {"sglang", "specforge", "original"}:
        return bool(draft.config.get("fc_norm") or draft.config.get("use_aux_norm"))  # SGLang 0.5.23: use_fc_norm
    return asks(draft, name)


def _boundaries(draft: Draft, form: str) -> tuple[tuple[int, ...] | None, list[str]]:
    """Return the boundaries, and a doubt where the list stands in the place where this format has none."""
    nested, outer = draft.nested_layers, draft.outer_layers
    if IDS[form] == "boundaries":
        right, wrong, place = outer, nested, "in eagle_config"
    else:
        right, wrong, place = tuple(one + 1 for one in nested) if nested else None, outer, "beside eagle_config"
    if right is None and wrong is not None:
        return None, [
            f"the layer ids {list(wrong)} stand {place}, where {TITLES[form]} has none: it cannot be told how they count"
        ]
    return right, []
