"""Where each part of a small model stands in its widened form. No torch.

Widening keeps the function: the real units keep their places at the beginning of every dimension, and what is added
never reaches them. A matrix that writes to the residual is nought but in its real block, so that the added part of the
residual stays 0; then the added columns of a matrix that reads the residual meet noughts and may hold anything, and so
may its added rows (queries, gates), whose results meet noughts in the matrix after. Numbers of chance stand wherever
they may: noughts cost less power, so less time, than weights do (894 against 788 TFLOP/s on an H200).

The RMS norm of a residual of N times as many units, the added ones 0, divides by sqrt(N) less: its weight is smaller by as much,
and its epsilon by N. Heads are added in groups behind the real ones, so that each query still meets its key; their size, and with
it the rotary embedding, is as before. Added layers write nothing to the residual. They stand where the default boundaries of
EAGLE-3 (2, L/2, L-3) still lie behind the same real layers, so that a draft needs no list of them.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from vigil_draft.errors import DraftError

SUPPORTED = ("LlamaForCausalLM", "MistralForCausalLM", "LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM")
LEAST_LAYERS = 6


class Dims(NamedTuple):
    """The sizes of a model."""

    hidden: int
    queries: int
    keys: int
    head: int
    inner: int
    layers: int

    @property
    def names(self) -> dict[str, int]:
        """Return each kind of dimension with its length."""
        return {
            "hidden": self.hidden,
            "q": self.queries * self.head,
            "kv": self.keys * self.head,
            "inner": self.inner,
        }


class Wish(NamedTuple):
    """How far to widen: `times` the width and the heads, the MLP's size and the layers (None: in proportion, and as many)."""

    times: int = 4
    inner: int | None = None
    layers: int | None = None
    seed: int = 0


class Kind(NamedTuple):
    """What the rows and columns of a matrix are; `columns` None for a norm. `times`: columns are so many of them side by side."""

    rows: str
    columns: str | None
    times: int = 1


WRITES = {"hidden", "words of the target"}
"""Rows whose added part must stay zero: the residual; and the embedding, whose rows are words (its columns are the residual)."""
_KINDS = {
    "self_attn.q_proj.weight": Kind("q", "hidden"),
    "self_attn.k_proj.weight": Kind("kv", "hidden"),
    "self_attn.v_proj.weight": Kind("kv", "hidden"),
    "self_attn.o_proj.weight": Kind("hidden", "q"),
    "mlp.gate_proj.weight": Kind("inner", "hidden"),
    "mlp.up_proj.weight": Kind("inner", "hidden"),
    "mlp.down_proj.weight": Kind("hidden", "inner"),
    "input_layernorm.weight": Kind("hidden", None),
    "hidden_norm.weight": Kind("hidden", None),
    "post_attention_layernorm.weight": Kind("hidden", None),
    "norm.weight": Kind("hidden", None),
    "lm_head.weight": Kind("words", "hidden"),
    "embed_tokens.weight": Kind("words of the target", "hidden"),
    "fc.weight": Kind("hidden", "hidden", 3),
}
_OF_A_DRAFT = ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight")
KEPT = ("d2t", "t2d")
"""Tensors that stay as they are: ids of words."""


def kind_of(name: str, *, draft: bool) -> Kind | None:
    """Return what a tensor is, None where it stays as it is.

    Raises:
        DraftError: It is none of a plain Llama: widening it would not be known to keep the function.

    """
    if name in KEPT:
        return None
    for end, kind in _KINDS.items():
        if name == end or name.endswith("." + end):
            return kind._replace(times=2) if draft and end in _OF_A_DRAFT else kind
    raise DraftError(f"{name}: only plain Llama models and their drafts can be widened")


def dims_of(config: Mapping[str, Any]) -> Dims:
    """Return the sizes that a config names.

    Raises:
        DraftError: One is missing, or the model is none that can be widened.

    """
    names = config.get("architectures") or []
    if not names or names[0] not in SUPPORTED:
        raise DraftError(
            f"{', '.join(map(str, names)) or 'no architecture'}: only {', '.join(SUPPORTED)} can be widened"
        )
    if any(config.get(flag) for flag in ("attention_bias", "mlp_bias", "bias", "quantization_config")):
        raise DraftError("a model with biases, or a quantised one, cannot be widened")
    try:
        heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
        keys = int(config.get("num_key_value_heads") or heads)
        head = int(config.get("head_dim") or hidden // heads)
        return Dims(hidden, heads, keys, head, int(config["intermediate_size"]), int(config["num_hidden_layers"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DraftError(f"config.json: {type(error).__name__}: {error}") from None


def wider(dims: Dims, wish: Wish) -> Dims:
    """Return the sizes after widening.

    Raises:
        DraftError: That would be smaller than the model is, or would move the default boundaries.

    """
    times, inner, layers = wish.times, wish.inner or dims.inner * wish.times, wish.layers or dims.layers
    if times < 1 or inner < dims.inner or layers < dims.layers:
        raise DraftError("a model can only become larger")
    if math.isqrt(times) ** 2 != times:
        raise DraftError(f"{times} times as wide: give a square, 4 or 9 or 16, by whose root norms divide exactly")
    if layers != dims.layers and dims.layers < LEAST_LAYERS:
        raise DraftError(f"a model of {dims.layers} layers has no room for more between its boundaries")
    return Dims(dims.hidden * times, dims.queries * times, dims.keys * times, dims.head, inner, layers)


def places_of(layers: int, wanted: int) -> list[int | None]:
    """Return for each layer of the deeper model the real one that stands there, None for an added one.

    The real layers before 2, before L/2 and before L-3 stand before 2, before L'/2 and before L'-3.
    """
    if layers == wanted:
        return list(range(layers))
    ends, new_ends = (2, layers // 2, layers - 3, layers), (2, wanted // 2, wanted - 3, wanted)
    found: list[int | None] = []
    begin = 0
    for end, new_end in zip(ends, new_ends, strict=True):
        real = list(range(begin, end))
        found += [*real, *[None] * (new_end - len(found) - len(real))]
        begin = end
    return found


def config_of(config: Mapping[str, Any], times: int, dims: Dims) -> dict[str, Any]:
    """Return the config of the wider model."""
    return {
        **config,
        "hidden_size": dims.hidden,
        "num_attention_heads": dims.queries,
        "num_key_value_heads": dims.keys,
        "head_dim": dims.head,
        "intermediate_size": dims.inner,
        "num_hidden_layers": dims.layers,
        "rms_norm_eps": float(config.get("rms_norm_eps", 1e-6)) / times,
    }


def spans(kind: Kind, small: Dims, large: Dims) -> list[tuple[int, int, int]]:
    """Return where the real columns of a matrix stand: (in the small one, in the wide one, how many) for each part of it."""
    if kind.columns is None:
        return []
    here, there = small.names[kind.columns], large.names[kind.columns]
    return [(part * here, part * there, here) for part in range(kind.times)]
