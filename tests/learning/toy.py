"""A tiny random Llama and greedy answers of its own, as prepared data.

python tests/learning/toy.py FOLDER: makes FOLDER/target, FOLDER/data and FOLDER/held-out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from vigil_draft.data import prepared

WORDS = 256
ANSWER = 24


def make_target(folder: Path) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=7,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        initializer_range=0.08,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    model = LlamaForCausalLM(config).eval()
    model.save_pretrained(folder)
    return model


def make_data(model: LlamaForCausalLM, folder: Path, documents: int, seed: int, shards: int = 2) -> None:
    """Prompts of one length a batch are answered together."""
    chance = torch.Generator().manual_seed(seed)
    pairs = []
    for size in torch.randint(3, 12, (max(1, documents // 32),), generator=chance).tolist():
        prompts = torch.randint(3, WORDS, (32, size), generator=chance)
        said = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            max_new_tokens=ANSWER,
            eos_token_id=None,
            pad_token_id=2,
        )
        pairs += [
            (row.tolist(), [place >= size for place in range(len(row))]) for row in said[: documents - len(pairs)]
        ]
    folder.mkdir(parents=True)
    each = -(-len(pairs) // shards)
    entries = [
        prepared.write_shard(folder, n, prepared.documents(pairs[n * each : (n + 1) * each])) for n in range(shards)
    ]
    prepared.write_manifest(folder, entries, {"target": "toy", "seed": seed})


if __name__ == "__main__":
    home = Path(sys.argv[1])
    toy = make_target(home / "target")
    make_data(toy, home / "data", 512, 1)
    make_data(toy, home / "held-out", 64, 2)
