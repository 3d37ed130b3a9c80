"""Make a random EAGLE-3 draft model for SmolLM2-135M: right or wrong in its shape, useless in its guesses.

Run it with vLLM's Python:

.engines/vllm/bin/python tests/real/make_draft.py FOLDER --hidden-size 512     # of another width than the target's 576
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

TARGET_HIDDEN = 576
INTERMEDIATE = 1536
VOCABULARY = 49152
DRAFT_VOCABULARY = 16384
HEAD = 64
LAYERS_READ = 3
"""EAGLE-3 reads the hidden states of three of the target's layers."""


def config(hidden: int) -> dict[str, Any]:
    """Return the draft's config."""
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": 1,
        "num_attention_heads": hidden // HEAD,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "vocab_size": VOCABULARY,
        "draft_vocab_size": DRAFT_VOCABULARY,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "torch_dtype": "bfloat16",
        "attention_bias": False,
        "mlp_bias": False,
    }


def weights(hidden: int) -> dict[str, Any]:
    """Return the draft's tensors: one layer, the projection of the target's hidden states, a head, the map of its words."""
    import torch  # noqa: PLC0415 - seconds

    chance = torch.Generator().manual_seed(0)
    shapes = {
        "midlayer.self_attn.q_proj": (hidden // HEAD * HEAD, 2 * hidden),
        "midlayer.self_attn.k_proj": (HEAD, 2 * hidden),
        "midlayer.self_attn.v_proj": (HEAD, 2 * hidden),
        "midlayer.self_attn.o_proj": (hidden, hidden // HEAD * HEAD),
        "midlayer.mlp.gate_proj": (INTERMEDIATE, hidden),
        "midlayer.mlp.up_proj": (INTERMEDIATE, hidden),
        "midlayer.mlp.down_proj": (hidden, INTERMEDIATE),
        "fc": (hidden, LAYERS_READ * hidden),
        "lm_head": (DRAFT_VOCABULARY, hidden),
    }
    found = {
        f"{name}.weight": (torch.randn(*shape, generator=chance) * 0.02).to(torch.bfloat16)
        for name, shape in shapes.items()
    }
    for norm in ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm"):
        found[f"{norm}.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
    found["d2t"] = torch.zeros(DRAFT_VOCABULARY, dtype=torch.int64)
    found["t2d"] = torch.arange(VOCABULARY) < DRAFT_VOCABULARY
    return found


def main() -> None:
    """Write config and weights."""
    from safetensors.torch import save_file  # noqa: PLC0415 - it brings torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hidden-size", type=int, default=TARGET_HIDDEN)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True)
    (asked.folder / "config.json").write_text(json.dumps(config(asked.hidden_size), indent=1))
    save_file(weights(asked.hidden_size), asked.folder / "model.safetensors")


if __name__ == "__main__":
    main()
