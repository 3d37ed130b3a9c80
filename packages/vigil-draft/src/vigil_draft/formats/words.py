"""The conventions of a draft in words, for people and for the files that we write."""

from typing import Any

from vigil.preflight.draft_kind import Draft
from vigil.preflight.model_config import integer, longest_context, part
from vigil_draft.formats.kinds import IDS, TITLES
from vigil_draft.formats.meaning import Meaning

_NORMS = {
    "norm_before_residual": "the residual is taken after hidden_norm",
    "norm_before_fc": "one norm over all inputs before fc",
    "fc_norm": "a norm for each input before fc",
    "norm_output": "the normed state goes into the next step",
}


def words_of(draft: Draft, meaning: Meaning, layers: int | None) -> dict[str, str]:
    """Return each convention in a line. `layers`: how many the target has, None where it is not known."""
    return {
        "format": TITLES[meaning.form],
        "layers": f"{draft.layers} of its own",
        "inputs": _inputs(meaning, layers),
        "norms": _norms(meaning),
        "vocabulary": _vocabulary(draft),
        "embedding": _embedding(draft),
        "head": _head(draft),
        "attention": _attention(draft),
        "positions": _positions(draft),
    }


def _inputs(meaning: Meaning, layers: int | None) -> str:
    boundaries = meaning.boundaries_of(layers)
    how = f"the ids of {TITLES[meaning.form]} are {IDS[meaning.form]}"
    if meaning.boundaries is not None:
        return f"boundaries {_list(meaning.boundaries)} (state after so many layers), from its list; {how}"
    if boundaries is not None:
        return f"boundaries {_list(boundaries)} (state after so many layers), the default of {layers} layers"
    return "boundaries 2, L // 2 and L - 3 of a target of L layers (state after so many layers), the default: it has no list"


def _norms(meaning: Meaning) -> str:
    on = [f"{name} (" + what + ")" for name, what in _NORMS.items() if name in meaning.norms]
    off = [name for name in _NORMS if name not in meaning.norms]
    return "; ".join([*on, f"without {', '.join(off)}"] if off else on)


def _vocabulary(draft: Draft) -> str:
    small, whole = draft.draft_vocabulary, integer(draft.config, "vocab_size")
    there = [name for name in ("d2t", "t2d") if name in draft.tensors]
    maps = f"maps: {' and '.join(there)}" if there else "no maps"
    if small is None or small == whole:
        return f"all {whole or '?'} tokens of the target; {maps}"
    return f"{small} of {whole or '?'} tokens; {maps}" + (" (d2t: target id less draft id)" if "d2t" in there else "")


def _embedding(draft: Draft) -> str:
    if "embed_tokens.weight" not in draft.tensors:
        return "none: the target's is taken"
    same = draft.hidden_size == draft.target_hidden_size
    return "its own" + (
        "; SGLang takes the target's in its place, vLLM keeps it" if same else ", of another width than the target's"
    )


def _head(draft: Draft) -> str:
    if "lm_head.weight" in draft.tensors:
        tied = draft.config.get("tie_word_embeddings") is True
        return "its own" + ("; tie_word_embeddings says otherwise" if tied else "")
    return "none: the target's is taken"


def _attention(draft: Draft) -> str:
    window = f"a window of {draft.window} tokens" if draft.window is not None else "all tokens before"
    bias = ", with biases" if draft.config.get("attention_bias") is True else ""
    bias += ", each head of queries and keys normed" if draft.head_norms else ""
    heads, keys = integer(draft.config, "num_attention_heads"), integer(draft.config, "num_key_value_heads")
    return f"{heads or '?'} heads ({keys or heads or '?'} of keys), over {window}{bias}"


def _positions(draft: Draft) -> str:
    inner = part(draft.config, "rope_parameters")
    theta: Any = draft.config.get("rope_theta", inner.get("rope_theta"))
    scaled = part(draft.config, "rope_scaling") or inner
    kind = scaled.get("rope_type", scaled.get("type"))
    told = f", rope of type {kind}" if isinstance(kind, str) and kind != "default" else ""
    base = theta if isinstance(theta, int | float) else "not said"
    return f"up to {longest_context(draft.config) or '?'}{told}, rope_theta {base}"


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
