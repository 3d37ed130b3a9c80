"""Cross-entropy with the target's distribution over the draft's words, and the head's gradients, in one pass by pieces.

Logits of T tokens over Vd words would be held once a step for backward: 7 x 32,768 x 16,384 x 4 bytes = 15 GB. Here a
piece's logits give their loss and their gradients at once and are gone.
"""

from __future__ import annotations

from typing import Any

import torch

ENTRIES_AT_ONCE = 1 << 26
"""Logits of a piece: 0.27 GB in fp32."""


class SoftLoss(torch.autograd.Function):
    """Sum over places of the cross-entropy of what the draft says with what the target says; and the best word of each place."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - what autograd hands over stands in one line
        ctx: Any,
        hidden: torch.Tensor,
        head: torch.Tensor,
        wanted: torch.Tensor,
        wanted_lse: torch.Tensor,
        rows: torch.Tensor,
        counts: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sum over the places that count, and the best word of every place."""
        weight = head.to(hidden.dtype)
        total = hidden.new_zeros((), dtype=torch.float32)
        grad_hidden, grad_head = torch.empty_like(hidden), torch.zeros_like(head, dtype=torch.float32)
        best = []
        size = max(1, ENTRIES_AT_ONCE // len(head))
        for begin in range(0, len(hidden), size):
            part = slice(begin, begin + size)
            logits = (hidden[part] @ weight.T).float()
            best.append(logits.argmax(-1))
            lse = logits.logsumexp(-1, keepdim=True)
            share = (wanted[rows[part]].float() - wanted_lse[rows[part], None]).exp_()
            weigh = counts[part, None].float()
            total += ((lse - (share * logits).sum(-1, keepdim=True)) * weigh).sum()
            change = ((logits - lse).exp_().sub_(share) * weigh).to(hidden.dtype)
            grad_hidden[part] = change @ weight
            grad_head += change.T @ hidden[part]
        ctx.save_for_backward(grad_hidden, grad_head)
        found = torch.cat(best) if best else rows.new_zeros(0)
        ctx.mark_non_differentiable(found)
        return total, found

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, _best: Any) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        """Scale what forward found."""
        grad_hidden, grad_head = ctx.saved_tensors
        return grad_hidden * grad.to(grad_hidden.dtype), grad_head * grad, None, None, None, None
