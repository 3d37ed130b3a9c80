"""Names of a draft's tensors. Ours are those of speculators and vLLM; others differ in prefix, first layer and later norms."""

import re
from collections.abc import Iterable

from vigil.screen import plain
from vigil_draft.errors import DraftError

# SGLang's old names of the norms of three inputs (0.5.23: legacy_name_map).
_OLD = {"aux_norm_low.": "fc_norm.0.", "aux_norm_mid.": "fc_norm.1.", "aux_norm_high.": "fc_norm.2."}
_LATER = re.compile(r"layers\.([1-9]\d{0,3})\.(input_layernorm|hidden_norm)\.weight\Z")
_FIRST = "layers.0."
_MIDLAYER = "midlayer."
WRITES_HIDDEN_NORM = ("sglang",)
"""Those that call the norm before a later layer's attention hidden_norm; the others call it input_layernorm."""


def ours(names: Iterable[str]) -> dict[str, str]:
    """Return our name of each tensor.

    Raises:
        DraftError: Two of them are one tensor.

    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        found[name] = _ours(name)
        if found[name] in taken:
            raise DraftError(f"{plain(name, 80)} is there a second time, under another name")
        taken.add(found[name])
    return found


def _ours(name: str) -> str:
    bare = name.removeprefix("model.")
    if bare.startswith(_MIDLAYER):
        bare = _FIRST + bare.removeprefix(_MIDLAYER)
    for old, new in _OLD.items():
        if bare.startswith(old):
            bare = new + bare.removeprefix(old)
    later = _LATER.match(bare)
    return f"layers.{later.group(1)}.input_layernorm.weight" if later is not None else bare


def written(name: str, to: str, *, midlayer: bool) -> str:
    """Return the name that a format has for a tensor of ours."""
    later = _LATER.match(name)
    if later is not None and to in WRITES_HIDDEN_NORM:
        return f"layers.{later.group(1)}.hidden_norm.weight"
    return _MIDLAYER + name.removeprefix(_FIRST) if midlayer and name.startswith(_FIRST) else name
