"""Attention over packed documents: flash kernels where the machine has them and they prove right, else a mask.

torch's own flash kernels (`aten::_flash_attention_forward`, which `torch.nn.attention.varlen` calls) take the
documents' bounds: no mask of length x length, nothing to compile, and a softmax's logarithm beside the result, with
which partial attentions join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as nn_functional

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch


class FlashKernel:
    """torch's flash attention over documents, one query a key of the same place and before; q [T, Hq, D], k and v [T, Hk, D].

    Its arguments are those of torch 2.11's and 2.13's `torch/nn/attention/varlen.py`; without dropout the state of
    chance is nothing.
    """

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: Batch
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the result, and the logarithm of each softmax's sum [Hq, T]."""
        found = torch.ops.aten._flash_attention_forward(  # noqa: SLF001 - varlen.py calls it, and nothing public gives the logarithm
            q, k, v, *_bounds(batch), 0.0, is_causal=True, return_debug_mask=False
        )
        return found[0], found[1]

    def backward(
        self, grad: torch.Tensor, given: tuple[torch.Tensor, ...], out: torch.Tensor, lse: torch.Tensor, batch: Batch
    ) -> tuple[torch.Tensor, ...]:
        """Return the gradients of q, k, v, for a softmax whose result and logarithm are these."""
        state, unused = torch.zeros(2, dtype=torch.uint64, device=grad.device), torch.empty(0, device=grad.device)
        found: tuple[torch.Tensor, ...] = torch.ops.aten._flash_attention_backward(  # noqa: SLF001 - as above
            grad,
            *given,
            out,
            lse,
            *_bounds(batch),
            0.0,
            True,  # noqa: FBT003 - is_causal; the operator takes no names here
            state,
            unused,
        )
        return found


def _bounds(batch: Batch) -> tuple[torch.Tensor, torch.Tensor, int, int]:
    return batch.bounds, batch.bounds, batch.longest, batch.longest


def mask(batch: Batch) -> torch.Tensor:
    """Return what may see what, [rows, 1, length, length]: itself and what stands before it in its document."""
    document = batch.document.view(-1, batch.length)
    same = document[:, :, None] == document[:, None, :]
    return same.tril().unsqueeze(1)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return attention by a mask: any device and kind of number."""
    rows = [x.view(-1, batch.length, *x.shape[1:]).transpose(1, 2) for x in (q, k, v)]
    found = nn_functional.scaled_dot_product_attention(*rows, attn_mask=mask(batch), enable_gqa=True)
    return found.transpose(1, 2).reshape(q.shape)
