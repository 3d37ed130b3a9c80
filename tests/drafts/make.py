"""Make toy drafts and their target: real headers, bytes that can be told apart, no torch. Hidden 64, vocabulary 512 of which 128.

    python tests/drafts/make.py FOLDER [CASE ...]      # each case below FOLDER, with `target` beside it

A case is a draft as a trainer wrote it, or one that a trap was laid in: `CASES`, used by the tests and by `loaders.py`.
"""

import copy
import hashlib
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HIDDEN, HEADS, EACH, INNER, VOCABULARY, SMALL, LAYERS = 64, 2, 32, 128, 512, 128, 8
BYTES = {"BF16": 2, "I64": 8, "BOOL": 1, "F32": 4}
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": EACH,
    "intermediate_size": INNER, "vocab_size": VOCABULARY, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2,
    "rope_theta": 10000.0,
}  # fmt: skip
TARGET = {**LLAMA, "architectures": ["LlamaForCausalLM"], "num_hidden_layers": LAYERS}
Told = tuple[str, tuple[int, ...]]


class Draft:
    """A draft that a case changes before it is written: `config`, and `tensors` (name -> dtype, shape)."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Told]) -> None:
        self.config, self.tensors = copy.deepcopy(config), dict(tensors)
        self.given: dict[str, bytes] = {}

    def write(self, folder: Path) -> Path:
        """Write config.json and model.safetensors."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config, indent=1))
        write_safetensors(folder / "model.safetensors", self.tensors, self.given)
        return folder


def layer(prefix: str, number: int = 0, norm: str = "hidden_norm") -> dict[str, Told]:
    """Return the tensors of a layer; the first takes embedding and state side by side."""
    wide = 2 * HIDDEN if number == 0 else HIDDEN
    norms = ["input_layernorm", "hidden_norm"] if number == 0 else [norm]
    shapes = {
        **{f"self_attn.{one}_proj": (HEADS * EACH, wide) for one in "qkv"},
        "self_attn.o_proj": (HIDDEN, HEADS * EACH), "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER), "post_attention_layernorm": (HIDDEN,), **dict.fromkeys(norms, (HIDDEN,)),
    }  # fmt: skip
    return {f"{prefix}.{name}.weight": ("BF16", shape) for name, shape in shapes.items()}


REST: dict[str, Told] = {
    "fc.weight": ("BF16", (HIDDEN, 3 * HIDDEN)), "norm.weight": ("BF16", (HIDDEN,)), "lm_head.weight": ("BF16", (SMALL, HIDDEN)),
    "d2t": ("I64", (SMALL,)), "t2d": ("BOOL", (VOCABULARY,)),
}  # fmt: skip
EMBEDDING: dict[str, Told] = {"embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN))}


def original() -> Draft:
    """Return a draft as SafeAILab publishes it."""
    config = {**LLAMA, "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "draft_vocab_size": SMALL}
    return Draft(config, {**layer("midlayer"), **REST})


def specforge() -> Draft:
    """Return a draft as SpecForge writes it, with the list of its layers."""
    made = original()
    made.config["architectures"] = ["LlamaForCausalLMEagle3"]
    made.config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [0, 2, 5], "use_aux_hidden_state": True}
    return made


def sglang() -> Draft:
    """Return the portable draft: flat, by the names of today, with the default layers."""
    config = {**original().config, "architectures": ["LlamaForCausalLMEagle3"]}
    return Draft(config, {**layer("layers.0"), **REST})


def vllm() -> Draft:
    """Return a flat draft of vLLM's own class, with boundaries."""
    config = {
        **original().config,
        "architectures": ["Eagle3LlamaForCausalLM"],
        "eagle_aux_hidden_state_layer_ids": [1, 3, 6],
    }
    return Draft({**config, "norm_before_residual": False}, {**layer("layers.0"), **REST})


def speculators() -> Draft:
    """Return a draft as speculators 0.9 writes it, portable flags."""
    inner = {
        **{name: value for name, value in LLAMA.items() if name not in {"rope_theta", "torch_dtype"}},
        "num_hidden_layers": 1,
    }
    config = {
        "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "speculators_version": "0.9.0",
        "transformer_layer_config": {**inner, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        "draft_vocab_size": SMALL, "target_hidden_size": None, "eagle_aux_hidden_state_layer_ids": [1, 3, 6],
        "norm_before_residual": False, "norm_before_fc": False, "fc_norm": False, "norm_output": False,
        "embed_requires_grad": False, "tie_word_embeddings": False, "dtype": "bfloat16",
        "speculators_config": {
            "algorithm": "eagle3", "default_proposal_method": "greedy",
            "proposal_methods": [
                {"proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1, "accept_tolerance": 0.0}
            ],
            "verifier": {"name_or_path": "toy/target", "architectures": ["LlamaForCausalLM"]},
        },
    }  # fmt: skip
    return Draft(config, {**layer("layers.0"), **REST, **EMBEDDING})


FORMS: dict[str, Callable[[], Draft]] = {
    "original": original, "specforge": specforge, "sglang": sglang, "vllm": vllm, "speculators": speculators
}  # fmt: skip


def _changed(base: Callable[[], Draft], **config: Any) -> Draft:
    """Return a draft with other settings; `...` takes one away."""
    made = base()
    made.config.update(config)
    made.config = {name: value for name, value in made.config.items() if value is not ...}
    return made


def _with(base: Callable[[], Draft], tensors: dict[str, Told], **config: Any) -> Draft:
    made = _changed(base, **config)
    made.tensors.update(tensors)
    return made


def _without(base: Callable[[], Draft], *names: str) -> Draft:
    made = base()
    for name in names:
        del made.tensors[name]
    return made


def _prefixed() -> Draft:
    made = sglang()
    made.tensors = {f"model.{name}": told for name, told in made.tensors.items()}
    return made


def _four() -> Draft:
    made = _with(speculators, {"fc.weight": ("BF16", (HIDDEN, 4 * HIDDEN))})
    made.config["eagle_aux_hidden_state_layer_ids"] = [1, 3, 5, 6]
    return made


def _wide() -> Draft:
    """Return a draft as wide as its three inputs together."""
    made = sglang()
    made.config.update(hidden_size=3 * HIDDEN, target_hidden_size=HIDDEN)
    grown = {name: (dtype, _grown(name, shape)) for name, (dtype, shape) in made.tensors.items()}
    made.tensors = {**grown, "embed_tokens.weight": ("BF16", (VOCABULARY, 3 * HIDDEN))}
    return made


def _grown(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if name in {"d2t", "t2d"}:
        return shape
    if name == "fc.weight":
        return (3 * HIDDEN, 3 * HIDDEN)
    keeps = name.endswith(
        ("q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight", "up_proj.weight", "lm_head.weight")
    )
    if len(shape) == 1:
        return (3 * HIDDEN,)
    return (shape[0], 3 * shape[1]) if keeps else (3 * shape[0], shape[1])


BIASES: dict[str, Told] = {f"layers.0.self_attn.{one}_proj.bias": ("BF16", (HEADS * EACH,)) for one in "qkvo"}
SLIDES = {"layer_types": ["sliding_attention"], "sliding_window": 32}
HEAD_NORMS: dict[str, Told] = {f"layers.0.self_attn.{one}_norm.weight": ("BF16", (EACH,)) for one in "qk"}


def _qwen3() -> Draft:
    """Return a draft of vLLM's class for Qwen3: the heads of queries and keys are normed."""
    return _with(vllm, HEAD_NORMS, architectures=["Eagle3Qwen3ForCausalLM"], model_type="qwen3")


CASES: dict[str, Callable[[], Draft]] = {
    **FORMS,
    "unknown-tensor": lambda: _with(sglang, {"extra.weight": ("BF16", (HIDDEN,))}),
    "missing-norm": lambda: _without(sglang, "layers.0.hidden_norm.weight"),
    "norm-before-residual": lambda: _changed(sglang, norm_before_residual=True),
    "residual-unsaid": lambda: _changed(speculators, norm_before_residual=...),
    "ids-beside": lambda: _changed(sglang, eagle_aux_hidden_state_layer_ids=[1, 3, 6]),
    "biases": lambda: _with(sglang, BIASES, attention_bias=True),
    "no-d2t": lambda: _without(sglang, "d2t"),
    "tied": lambda: _changed(sglang, tie_word_embeddings=True),
    "two-layers": lambda: _with(sglang, layer("layers.1", 1, "input_layernorm"), num_hidden_layers=2),
    "two-layers-sglang": lambda: _with(sglang, layer("layers.1", 1), num_hidden_layers=2),
    "wide-as-inputs": _wide,
    "window": lambda: _changed(sglang, **SLIDES),
    "four-inputs": _four,
    "prefixed": _prefixed,
    "norm-output": lambda: _changed(specforge, norm_output=True),
    "qwen3": _qwen3,
    "head-norms": lambda: _with(sglang, HEAD_NORMS),
    "head-norms-vllm": lambda: _with(vllm, HEAD_NORMS),
    "qwen3-without-norms": lambda: _changed(vllm, architectures=["Eagle3Qwen3ForCausalLM"], model_type="qwen3"),
    "short": lambda: _changed(sglang, max_position_embeddings=128),
}
"""Each format, and each trap that engines fall into."""


def write_target(folder: Path) -> Path:
    """Write the target: its config, its embedding and its head."""
    tensors: dict[str, Told] = {
        "model.embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN)), "lm_head.weight": ("BF16", (VOCABULARY, HIDDEN))
    }  # fmt: skip
    made = Draft(TARGET, tensors)
    made.given = {"model.embed_tokens.weight": data_of("embed_tokens.weight", *EMBEDDING["embed_tokens.weight"])}
    return made.write(folder)


def data_of(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return a tensor's bytes: numbers near 1 that come from its name, and for the maps a real map of every fourth token."""
    count = 1
    for one in shape:
        count *= one
    last = name.rpartition(".")[2]
    if last == "d2t":
        return struct.pack(f"<{count}q", *(3 * place for place in range(count)))
    if last == "t2d":
        return bytes(place % 4 == 0 and place // 4 < SMALL for place in range(count))
    chance = hashlib.shake_128(name.replace("midlayer.", "layers.0.").encode()).digest(count)
    if dtype == "BF16":
        return b"".join(bytes((byte, 0x3F)) for byte in chance)
    return (chance * BYTES[dtype])[: count * BYTES[dtype]]


def write_safetensors(path: Path, tensors: dict[str, Told], given: dict[str, bytes] | None = None) -> None:
    """Write a file of tensors with the bytes of `data_of`, or those that are given."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end, parts = 0, []
    for name, (dtype, shape) in tensors.items():
        data = (given or {}).get(name) or data_of(name, dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def main() -> None:
    """Write the target and all cases, or those that are named."""
    folder = Path(sys.argv[1])
    write_target(folder / "target")
    for name in sys.argv[2:] or CASES:
        CASES[name]().write(folder / name)


if __name__ == "__main__":
    main()
