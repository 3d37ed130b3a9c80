"""A draft's folder: config and weights in the flat form that SGLang and vLLM load, its words, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from vigil.errors import UsageError
from vigil_draft.data.prepared import write_whole
from vigil_draft.formats.configs import USUAL_INPUTS
from vigil_draft.learn.attention import proven
from vigil_draft.learn.draft import Draft
from vigil_draft.states.attention import FlashKernel
from vigil_draft.states.target import default_boundaries

if TYPE_CHECKING:
    from vigil_draft.states.target import Target

OTHER_MATHS = (
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "norm_output",
    "attention_bias",
    "bias",
    "tie_word_embeddings",
)
"""Flags that change what a draft computes; the portable profile has all of them false."""


def config_for(target: Target, words: int, inner: int | None = None) -> dict[str, Any]:
    """Return the config of a draft of this target: its shape (but for `inner`, the MLP's size), one layer, its RoPE.

    No flag stands in it that engines read each in its own way.
    """
    has = target.config.get_text_config()
    rope = dict(has.rope_parameters)
    heads = has.num_attention_heads
    layers = len(target.decoder.layers)
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": has.hidden_size,
        "intermediate_size": inner or has.intermediate_size,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "num_key_value_heads": getattr(has, "num_key_value_heads", heads),
        "head_dim": getattr(has, "head_dim", None) or has.hidden_size // heads,
        "hidden_act": "silu",
        "vocab_size": has.vocab_size,
        "draft_vocab_size": words,
        "max_position_embeddings": has.max_position_embeddings,
        "rms_norm_eps": has.rms_norm_eps,
        "rope_theta": rope.get("rope_theta"),
        "rope_parameters": rope,
        "tie_word_embeddings": False,
        "bos_token_id": has.bos_token_id,
        "eos_token_id": has.eos_token_id,
        "pad_token_id": has.pad_token_id,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "mlp_bias": False,
    }
    if len(target.boundaries) != USUAL_INPUTS:
        config["num_aux_hidden_states"] = len(target.boundaries)  # read by vLLM from 0.23 and SGLang from 0.5.12 on
    if tuple(target.boundaries) != default_boundaries(layers):
        # vLLM reads the first, as boundaries; SGLang the second, as layers
        config["eagle_aux_hidden_state_layer_ids"] = list(target.boundaries)
        shifted = [each - 1 for each in target.boundaries]
        config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": shifted, "use_aux_hidden_state": True}
    return config


def make(config: dict[str, Any], vocabulary: torch.Tensor, target: Target) -> Draft:
    """Return a draft for the states of this target, on its device."""
    width = target.embedding.shape[1]
    if config["hidden_size"] != width or config["vocab_size"] != len(target.embedding):
        raise UsageError(
            f"a draft of another target: width {config['hidden_size']} and {config['vocab_size']} words, "
            f"{target.path} has {width} and {len(target.embedding)}"
        )
    full = {**config, "target_hidden_size_of_states": width * len(target.boundaries)}
    draft = Draft(full, vocabulary.to(target.device), target.embedding).to(target.device)
    if target.device.type == "cuda":
        shape = (config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"])
        draft.kernel = proven(FlashKernel(), *shape, target.device)
    return draft


def write(folder: Path, draft: Draft, config: dict[str, Any], provenance: dict[str, Any]) -> None:
    """Write the folder: weights in bf16, no embeddings (the engines take the target's), the config last."""
    folder.mkdir(parents=True, exist_ok=True)
    words = draft.vocabulary.cpu()
    tensors = {
        name: weight.detach().to("cpu", torch.bfloat16).contiguous() for name, weight in draft.named_parameters()
    }
    tensors["d2t"] = words - torch.arange(len(words))
    tensors["t2d"] = torch.zeros(config["vocab_size"], dtype=torch.bool).index_fill_(0, words, True)  # noqa: FBT003
    write_whole(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    write_whole(folder / "vigil.json", json.dumps(provenance, indent=1).encode())
    write_whole(folder / "README.md", _card(config, provenance).encode())
    write_whole(folder / "config.json", json.dumps(config, indent=1).encode())


def read(folder: Path, target: Target) -> tuple[Draft, dict[str, Any]]:
    """Return the draft of a folder and its config; UsageError, one clear line, where it is not one in the portable profile."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        tensors = load_file(folder / "model.safetensors")
    except FileNotFoundError as error:
        others = [each.name for each in folder.glob("*") if each.suffix in {".bin", ".pt", ".pth", ".ckpt"}]
        pickled = f"; {others[0]} is a pickle, which is never loaded" if others else ""
        raise UsageError(f"{folder}: no {Path(error.filename or 'model.safetensors').name}{pickled}") from None
    except (ValueError, SafetensorError) as error:
        raise UsageError(f"{folder}: damaged: {str(error).splitlines()[0]}") from None
    if "transformer_layer_config" in config:
        raise UsageError(
            f"{folder}: is in the form of speculators: vigil draft convert {folder} DST --to vllm comes first"
        )
    if not isinstance(config.get("hidden_size"), int) or not isinstance(config.get("vocab_size"), int):
        raise UsageError(f"{folder}: its config.json says no hidden_size or vocab_size: not a draft")
    asked = [flag for flag in OTHER_MATHS if config.get(flag)]
    if asked:
        raise UsageError(f"{folder}: {', '.join(asked)} set: only drafts in the portable profile can be evaluated here")
    tensors = {name.removeprefix("model.").replace("layers.0.", "midlayer."): each for name, each in tensors.items()}
    offsets = tensors.pop("d2t", None)
    for unused in ("t2d", "embed_tokens.weight"):
        tensors.pop(unused, None)
    words = config.get("draft_vocab_size") or config["vocab_size"]
    vocabulary = torch.arange(words) if offsets is None else offsets + torch.arange(len(offsets))
    draft = make(config, vocabulary, target)
    wanted = {name: tuple(weight.shape) for name, weight in draft.named_parameters()}
    found = {name: tuple(each.shape) for name, each in tensors.items()}
    if wanted != found:
        first = min(set(wanted.items()) ^ set(found.items()))
        raise UsageError(f"{folder}: its tensors are not those of its config: {first[0]} {list(first[1])}")
    draft.load_state_dict(tensors)
    return draft, config


def boundaries_of(folder: Path) -> tuple[int, ...] | None:
    """Return the boundaries that a draft's config names: at its top as vLLM reads them, or nested, as layers, as SGLang does."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        raise UsageError(f"{folder}: no config.json that can be read: not a draft") from None
    name = "eagle_aux_hidden_state_layer_ids"
    if config.get(name):
        return tuple(config[name])
    nested = (config.get("eagle_config") or {}).get(name)
    return tuple(each + 1 for each in nested) if nested else None


def _card(config: dict[str, Any], provenance: dict[str, Any]) -> str:
    lines = [
        f"- {name}: {json.dumps(value) if isinstance(value, dict | list) else value}"
        for name, value in provenance.items()
    ]
    title = f"# EAGLE-3 draft for {provenance.get('target')}\n\nOne layer, {config['draft_vocab_size']} words."
    return "\n".join([title, "Made by `vigil draft train`; embeddings are the target's.\n", *lines, ""])
