"""What a draft is, by its tensors where they were seen, else by its config: EAGLE-3, an older EAGLE, a model of its own."""

from typing import Any

import msgspec

from vigil.preflight.model_config import Config, architectures, integer, integers, part, text_part
from vigil.preflight.seen_models import ModelSeen, TensorSeen

# Drafts of other kinds than those that are looked into here.
OTHERS = ("dflash", "dspark", "mtp", "nextn", "medusa", "mlpspeculator", "lilicorr", "peagle", "assistant")
OF_LLAMA = (
    "LlamaForCausalLMEagle3",
    "Eagle3LlamaForCausalLM",
    "LlamaForCausalLM",
    "Eagle3DraftModel",
    "Eagle3Speculator",
)
OF_QWEN3 = ("Eagle3Qwen3ForCausalLM", "Eagle3DraftModel", "Eagle3Speculator")
"""With model_type qwen3: vLLM loads them with its class Eagle3Qwen3ForCausalLM (0.32: speculators/algos.py, update_eagle3)."""
_LAYER = "layers.0."
_OLD_LAYER = "midlayer."
HEAD_NORMS = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A draft. `kind`: "eagle3", "eagle", "model", "other", or "" where it cannot be told.

    `config` is flat: of a draft of the speculators library its inner config with what stands above it. `tensors` have no
    "model." before their names; empty where they were not seen. `prefixed`: those that had it.
    """

    kind: str
    config: dict[str, Any]
    given: str
    speculators: bool
    tensors: dict[str, TensorSeen]
    prefixed: tuple[str, ...] = ()

    @property
    def hidden_size(self) -> int | None:
        """How wide it is."""
        return integer(self.config, "hidden_size")

    @property
    def target_hidden_size(self) -> int | None:
        """How wide its target must be."""
        return integer(self.config, "target_hidden_size") or self.hidden_size

    @property
    def nested_layers(self) -> tuple[int, ...] | None:
        """The layers that it is fed from, as `eagle_config` names them."""
        return integers(part(self.config, "eagle_config").get("eagle_aux_hidden_state_layer_ids"))

    @property
    def outer_layers(self) -> tuple[int, ...] | None:
        """The layers that it is fed from, as they stand beside the other settings."""
        return integers(self.config.get("eagle_aux_hidden_state_layer_ids"))

    @property
    def fed_from(self) -> int:
        """From how many layers an engine takes its inputs: both read the nested list, and 3 where there is none."""
        return integer(self.config, "num_aux_hidden_states") or len(self.nested_layers or ()) or 3

    @property
    def inputs(self) -> int:
        """From how many layers it was made to take its inputs, wherever its config says so."""
        return integer(self.config, "num_aux_hidden_states") or len(self.nested_layers or self.outer_layers or ()) or 3

    @property
    def window(self) -> int | None:
        """How many tokens back some layer of it looks, None where all look at everything (speculators 0.9: eagle3/core.py)."""
        kinds = self.config.get("layer_types")
        slides = isinstance(kinds, list) and "sliding_attention" in kinds
        return integer(self.config, "sliding_window") if slides else None

    @property
    def layers(self) -> int:
        """How many layers it has."""
        return integer(self.config, "num_hidden_layers") or 1

    @property
    def draft_vocabulary(self) -> int | None:
        """How many tokens it can propose."""
        return integer(self.config, "draft_vocab_size")

    @property
    def is_llama(self) -> bool:
        """Whether both engines load it with their class for Llama's EAGLE-3 drafts, whose parts are known here."""
        names, kind = architectures(self.config), self.config.get("model_type")
        return (kind is None or kind == "llama") and all(one in OF_LLAMA for one in names)

    @property
    def is_qwen3(self) -> bool:
        """Whether vLLM loads it with its class for Qwen3's: a Llama's but for a norm over each head of queries and keys."""
        names = architectures(self.config)
        return self.config.get("model_type") == "qwen3" and bool(names) and all(one in OF_QWEN3 for one in names)

    @property
    def head_norms(self) -> tuple[str, ...]:
        """The tensors that norm each head of queries and keys, as they are named."""
        return tuple(one for one in self.tensors if one.endswith(HEAD_NORMS))

    @property
    def quantised(self) -> bool:
        """Whether its tensors are others than those of a plain draft."""
        return any(one.endswith(("scale", "qweight", "qzeros", "weight_packed", "g_idx")) for one in self.tensors)


def draft_from(model: ModelSeen) -> Draft | None:
    """Return what a model is as a draft, None where it has no config."""
    if model.config is None:
        return None
    tensors = {name.removeprefix("model."): one for name, one in (model.tensors or {}).items()}
    inner = model.config.get("transformer_layer_config")
    speculators = "speculators_model_type" in model.config or isinstance(inner, dict)
    flat = {**inner, **_above(model.config)} if isinstance(inner, dict) else dict(model.config)
    kind = _kind(model.config, tensors)
    prefixed = tuple(name for name in model.tensors or () if name.startswith("model."))
    return Draft(kind=kind, config=flat, given=model.given, speculators=speculators, tensors=tensors, prefixed=prefixed)


def _above(config: Config) -> dict[str, Any]:
    """Return what stands above the inner config and counts (vLLM 0.32: configs/speculators/algos.py, update_eagle3)."""
    names = (
        "architectures", "draft_vocab_size", "target_hidden_size", "norm_before_residual", "norm_before_fc", "fc_norm",
        "norm_output", "eagle_aux_hidden_state_layer_ids", "tie_word_embeddings", "embed_requires_grad",
    )  # fmt: skip
    return {name: config[name] for name in names if config.get(name) is not None}


def _kind(config: Config, tensors: dict[str, TensorSeen]) -> str:
    names = " ".join((*architectures(config), str(config.get("speculators_model_type") or ""))).lower()
    if any(one in names for one in OTHERS) or "dflash_config" in config:
        return "other"
    if "fc.weight" in tensors:
        normed = any(f"{layer}hidden_norm.weight" in tensors for layer in (_LAYER, _OLD_LAYER))
        return "eagle3" if normed or "d2t" in tensors or "eagle3" in names else "eagle"
    if tensors:
        whole = "embed_tokens.weight" in tensors and f"{_LAYER}input_layernorm.weight" in tensors
        return "model" if whole and f"{_LAYER}hidden_norm.weight" not in tensors else ""
    if "eagle3" in names or "draft_vocab_size" in config:
        return "eagle3"
    if "eagle" in names:
        return "eagle"
    layers = integer(text_part(config), "num_hidden_layers")
    return "model" if layers is not None and layers > 1 else ""
