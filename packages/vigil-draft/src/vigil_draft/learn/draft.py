"""The EAGLE-3 draft as a torch module: one Llama layer that reads a token beside the target's state.

Names of parameters are those of the file (`midlayer.*`). The state that is fed back is the one BEFORE the final norm,
as SGLang 0.5.23 (`LlamaModel.forward`, norm_output false) and vLLM 0.32 (`hidden_prenorm`) feed it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional as nn_functional

from vigil_draft.learn.attention import chain_attention

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch


class Norm(nn.Module):
    """RMS norm, computed in fp32 as the engines do."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, normed, in its own kind of number."""
        return nn_functional.rms_norm(x.float(), x.shape[-1:], self.weight.float(), self.eps).to(x.dtype)


class Attention(nn.Module):
    """The four projections."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, self.size = config["hidden_size"], config["head_dim"]
        heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.q_proj = nn.Linear(2 * width, heads * self.size, bias=False)
        self.k_proj = nn.Linear(2 * width, key_heads * self.size, bias=False)
        self.v_proj = nn.Linear(2 * width, key_heads * self.size, bias=False)
        self.o_proj = nn.Linear(heads * self.size, width, bias=False)

    def heads(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values [T, heads, size]."""
        q, k, v = (each(x).unflatten(-1, (-1, self.size)) for each in (self.q_proj, self.k_proj, self.v_proj))
        return q, k, v


class Mlp(nn.Module):
    """Gate, up, down."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what is added to the residual."""
        found: torch.Tensor = self.down_proj(nn_functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return found


class Layer(nn.Module):
    """The one layer; its parts are joined in `Draft.unroll`."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn, self.mlp = Attention(config), Mlp(config)
        self.input_layernorm, self.hidden_norm = Norm(width, eps), Norm(width, eps)
        self.post_attention_layernorm = Norm(width, eps)


class Draft(nn.Module):
    """A draft and its map of words; `embedding` is the target's, frozen, no parameter of ours."""

    def __init__(self, config: dict[str, Any], vocabulary: torch.Tensor, embedding: torch.Tensor) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.config, self.embedding = config, embedding
        self.fc = nn.Linear(config["target_hidden_size_of_states"], width, bias=False)
        self.midlayer = Layer(config)
        self.norm = Norm(width, config["rms_norm_eps"])
        self.lm_head = nn.Linear(width, len(vocabulary), bias=False)
        self.register_buffer("vocabulary", vocabulary, persistent=False)
        self.vocabulary: torch.Tensor
        self.rotary = _rotary(config)
        self.kernel: Any = None

    def begin(self, target: Any, seed: int) -> None:
        """Start from the target's head and final norm; all else by chance, the same for a seed."""
        chance = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in self.parameters():
                if weight.ndim == 2:  # noqa: PLR2004 - a matrix
                    weight.copy_(torch.randn(weight.shape, generator=chance) * 0.02)
                else:
                    weight.fill_(1.0)
            self.lm_head.weight.copy_(target.head[self.vocabulary])
            self.norm.weight.copy_(target.norm.weight)

    def unroll(self, batch: Batch, aux: torch.Tensor, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield of each step the normed state, and the state that is fed back, [T, H] both.

        Place p of step i is given token p+1+i and guesses token p+2+i; it sees step 0 of all places up to p in its
        document, and its own steps 1 to i: what a chain in serving sees that began at p. Tokens are the true ones: a
        chain is alive only as long as they are.
        """
        layer, hidden = self.midlayer, self.fc(aux)
        keys: list[torch.Tensor] = []
        values: list[torch.Tensor] = []
        for step in range(steps):
            embedded = nn_functional.embedding(ahead(batch.token_ids, step + 1), self.embedding).to(hidden.dtype)
            both = torch.cat([layer.input_layernorm(embedded), layer.hidden_norm(hidden)], dim=-1)
            q, k, v = layer.self_attn.heads(both)
            cos, sin = self.rotary(hidden, (batch.positions + step).unsqueeze(0))
            q, k = _turn(q, cos[0], sin[0]), _turn(k, cos[0], sin[0])
            keys.append(k)
            values.append(v)
            seen = chain_attention(q, keys, values, batch, self.kernel)
            hidden = hidden + layer.self_attn.o_proj(seen.flatten(1))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
            yield self.norm(hidden), hidden


def ahead(flat: torch.Tensor, places: int) -> torch.Tensor:
    """Return of each place what stands some places after it; the end is repeated (and counted nowhere)."""
    return torch.cat([flat[places:], flat[-1:].expand(places)]) if places < len(flat) else flat[-1:].expand_as(flat)


def _turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    cos, sin = cos.unsqueeze(1).to(x.dtype), sin.unsqueeze(1).to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _rotary(config: dict[str, Any]) -> nn.Module:
    from transformers import LlamaConfig  # noqa: PLC0415 - seconds
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding  # noqa: PLC0415

    names = ("hidden_size", "num_attention_heads", "head_dim", "max_position_embeddings", "rope_parameters")
    return LlamaRotaryEmbedding(
        LlamaConfig(**{name: dict(config[name]) if name == "rope_parameters" else config[name] for name in names})
    )
