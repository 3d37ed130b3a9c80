"""Attention over packed documents: flash kernels where the machine has them and they prove right, else a mask.

torch's own flash kernels (`aten::_flash_attention_forward`, which `torch.nn.attention.varlen` calls) take the documents' bounds: no mask
of length x length, nothing to compile, and a softmax's logarithm beside the result, with which partial attentions join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional as nn_functional

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch

Pieces = tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]]


class FlashKernel:
    """torch's flash attention over documents, one query a key of the same place and before; q [T, Hq, D], k and v [T, Hk, D]."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: Batch) -> Pieces:
        """Return the result, the logarithm of each softmax's sum [Hq, T], and what backward wants."""
        out, lse, state, unused, _ = torch.ops.aten._flash_attention_forward(  # noqa: SLF001
            q,
            k,
            v,
            batch.bounds,
            batch.bounds,
            batch.longest,
            batch.longest,
            0.0,
            True,
            False,  # noqa: FBT003
        )
        return out, lse, (state, unused)

    def backward(
        self,
        grad: torch.Tensor,
        given: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        out: torch.Tensor,
        lse: torch.Tensor,
        batch: Batch,
        state: tuple[torch.Tensor, ...],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of q, k, v, for a softmax whose result and logarithm are these."""
        found = torch.ops.aten._flash_attention_backward(  # noqa: SLF001
            grad,
            *given,
            out,
            lse,
            batch.bounds,
            batch.bounds,
            batch.longest,
            batch.longest,
            0.0,
            True,
            *state,  # noqa: FBT003
        )
        return found[0], found[1], found[2]


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
