"""Attention of a chain's step: all of step 0 up to its place, and its own later steps.

The later steps are diagonals: each place sees one key of each. The flash path asks the kernel for step 0 alone, joins
the diagonals to its result by the logarithm of the softmax, and gives the joined result and logarithm to the kernel's
backward, which with them returns what step 0 adds to the gradients of the WHOLE softmax (as ring attention does). So
memory is T x heads a step, never length x length.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from vigil_draft.states.attention import mask
from vigil_draft.states.trial import trial_batch

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch

MOST_OFF = 0.03
"""Of a kernel in bf16 from the same in fp32; rounding alone is 0.005."""


def chain_attention(
    q: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor], batch: Batch, kernel: Any = None
) -> torch.Tensor:
    """Return the attention of the newest step, [T, Hq, D]; keys and values of all steps so far, [T, Hk, D] each."""
    if kernel is not None:
        found: torch.Tensor = ChainByKernel.apply(kernel, batch, q, *keys, *values)
        return found
    return by_mask(q, keys, values, batch)


def proven(kernel: Any, heads: int, key_heads: int, size: int, device: torch.device) -> Any:
    """Return the kernel where its path equals the written-out one here, forward and backward; else None, and say why."""
    batch = trial_batch(1).to(device)
    chance = torch.Generator().manual_seed(0)
    shapes = [heads, *[key_heads] * 6, heads]
    q, *both, pull = (
        torch.randn(len(batch.token_ids), n, size, generator=chance).to(device, torch.bfloat16) for n in shapes
    )

    def found(kernel: Any, *given: torch.Tensor) -> list[torch.Tensor]:
        leaves = [x.detach().requires_grad_() for x in given]
        out = chain_attention(leaves[0], leaves[1:4], leaves[4:], batch, kernel)
        return [out.detach(), *torch.autograd.grad(out, leaves, pull.to(out.dtype))]

    try:
        pairs = zip(found(None, *(x.float() for x in (q, *both))), found(kernel, q, *both), strict=True)
        off = max(float((a - b.float()).norm() / a.norm()) for a, b in pairs)
        reason = f"off by {off:.3f}"
    except Exception as error:  # noqa: BLE001 - whatever this torch cannot do, the mask can
        off, reason = float("inf"), str(error).splitlines()[0]
    if off < MOST_OFF:
        return kernel
    print(
        f"a chain's attention goes by a mask, which is slow: the flash kernel is not usable here ({reason})",
        file=sys.stderr,
    )
    return None


def by_mask(q: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor], batch: Batch) -> torch.Tensor:
    """Return it with the scores written out: for the CPU, and to check the other by."""
    group = q.shape[1] // keys[0].shape[1]
    keys, values = ([x.repeat_interleave(group, dim=1) for x in each] for each in (keys, values))
    rows = lambda x: x.unflatten(0, (-1, batch.length)).transpose(1, 2)  # noqa: E731
    scale = q.shape[-1] ** -0.5
    scores = rows(q) @ rows(keys[0]).transpose(-1, -2) * scale
    scores = scores.masked_fill(~mask(batch), float("-inf"))
    own = [(rows(q) * rows(key)).sum(-1, keepdim=True) * scale for key in keys[1:]]
    weights = torch.cat([scores, *own], dim=-1).float().softmax(-1).to(q.dtype)
    found = weights[..., : batch.length] @ rows(values[0])
    for step, value in enumerate(values[1:]):
        found = found + weights[..., batch.length + step, None] * rows(value)
    return found.transpose(1, 2).flatten(0, 1)


class ChainByKernel(torch.autograd.Function):
    """The same through a kernel of step 0 (see the module)."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, batch: Batch, q: torch.Tensor, *both: torch.Tensor) -> torch.Tensor:
        """Join the kernel's result and the diagonals."""
        steps = len(both) // 2
        keys, values = both[:steps], both[steps:]
        first, lse0 = kernel.forward(q, keys[0], values[0], batch)
        scores = [
            (_grouped(q.float(), key) * key.unsqueeze(2)).sum(-1).flatten(1) * q.shape[-1] ** -0.5 for key in keys[1:]
        ]
        lse = torch.logsumexp(torch.stack([lse0.T, *scores]), dim=0)
        out = first.float() * (lse0.T - lse).exp().unsqueeze(-1)
        for score, value in zip(scores, values[1:], strict=True):
            out = out + (_grouped((score - lse).exp().unsqueeze(-1), value) * value.unsqueeze(2)).flatten(1, 2)
        out = out.to(q.dtype)
        ctx.kernel, ctx.batch, ctx.steps = kernel, batch, steps
        ctx.save_for_backward(q, *both, out, lse, *scores)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        """Let the kernel return its part for the joined softmax, and add the diagonals'."""
        steps, (q, *rest) = ctx.steps, ctx.saved_tensors
        keys, values, (out, lse, *scores) = rest[:steps], rest[steps : 2 * steps], rest[2 * steps :]
        grad = grad.contiguous()
        dq, dk0, dv0 = ctx.kernel.backward(grad, (q, keys[0], values[0]), out, lse.T.contiguous(), ctx.batch)
        dq, dks, dvs = dq.float(), [dk0], [dv0]
        through = (grad.float() * out.float()).sum(-1)
        for score, key, value in zip(scores, keys[1:], values[1:], strict=True):
            weight = (score - lse).exp()
            pull = (_grouped(grad.float(), value) * value.unsqueeze(2)).sum(-1).flatten(1)
            change = (weight * (pull - through) * q.shape[-1] ** -0.5).unsqueeze(-1)
            dq = dq + (_grouped(change, key) * key.unsqueeze(2)).flatten(1, 2)
            dks.append((_grouped(change, key) * _grouped(q, key)).sum(2).to(key.dtype))
            dvs.append((_grouped(weight.unsqueeze(-1), key) * _grouped(grad, key)).sum(2).to(value.dtype))
        return None, None, dq.to(q.dtype), *dks, *dvs


def _grouped(x: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Return x [T, Hq, ...] as [T, Hk, Hq / Hk, ...]: the queries beside the key that they share."""
    return x.unflatten(1, (key.shape[1], -1))
