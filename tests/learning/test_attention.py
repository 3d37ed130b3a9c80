"""A chain's attention: the kernel's path, given a kernel of the flash kernel's meaning, equals the written-out one."""

from __future__ import annotations

import pytest
import torch

from vigil_draft.learn.attention import ChainByKernel, by_mask, proven
from vigil_draft.states.attention import mask, masked
from vigil_draft.states.batch import Batch
from vigil_draft.states.trial import trial_batch


class WrittenOut:
    """What torch's flash kernels compute, in the open: backward believes the result and logarithm that it is given."""

    def forward(self, q, k, v, batch):
        kind = q.dtype
        q, k, v = (x if kind == torch.float64 else x.float() for x in (q, k, v))
        scores, values = self._scores(q, k, batch), self._rows(v, q, batch)
        lse = scores.logsumexp(-1)
        out = (scores - lse[..., None]).exp() @ values
        return self._flat(out).to(kind), lse.transpose(0, 1).flatten(1)

    def backward(self, grad, given, out, lse, batch):
        kind = grad.dtype
        q, k, v, grad, out = (x if kind == torch.float64 else x.float() for x in (*given, grad, out))
        heads = q.shape[1]
        lse = lse.unflatten(1, (-1, batch.length)).transpose(0, 1)
        weights = (self._scores(q, k, batch) - lse[..., None]).exp()
        grad, out = (x.unflatten(0, (-1, batch.length)).transpose(1, 2) for x in (grad, out))
        through = (grad * out).sum(-1, keepdim=True)
        change = weights * (grad @ self._rows(v, q, batch).transpose(-1, -2) - through) * q.shape[-1] ** -0.5
        dq = change @ self._rows(k, q, batch)
        dk = change.transpose(-1, -2) @ q.unflatten(0, (-1, batch.length)).transpose(1, 2)
        dv = weights.transpose(-1, -2) @ grad
        joined = (self._flat(x).unflatten(1, (k.shape[1], heads // k.shape[1])).sum(2) for x in (dk, dv))
        return tuple(x.to(kind) for x in (self._flat(dq), *joined))

    def _scores(self, q, k, batch):
        rows = q.unflatten(0, (-1, batch.length)).transpose(1, 2)
        scores = rows @ self._rows(k, q, batch).transpose(-1, -2) * q.shape[-1] ** -0.5
        return scores.masked_fill(~mask(batch), float("-inf"))

    def _rows(self, x, q, batch):
        return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1).unflatten(0, (-1, batch.length)).transpose(1, 2)

    def _flat(self, x):
        return x.transpose(1, 2).flatten(0, 1)


def heads(batch: Batch, count: int, seed: int) -> torch.Tensor:
    chance = torch.Generator().manual_seed(seed)
    return torch.randn(len(batch.token_ids), count, 8, generator=chance, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_the_kernels_path_equals_the_written_out_one(steps: int) -> None:
    batch = trial_batch(100)
    q, keys = heads(batch, 4, 0), [heads(batch, 2, 1 + n) for n in range(steps)]
    values = [heads(batch, 2, 11 + n) for n in range(steps)]
    pull = heads(batch, 4, 99).detach()
    found = []
    for out in (by_mask(q, keys, values, batch), ChainByKernel.apply(WrittenOut(), batch, q, *keys, *values)):
        (out * pull).sum().backward()
        found.append([out.detach(), *(x.grad.clone() for x in (q, *keys, *values))])
        for x in (q, *keys, *values):
            x.grad = None
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_chain_of_one_step_is_attention_by_a_mask() -> None:
    batch = trial_batch(100)
    q, k, v = heads(batch, 4, 0), heads(batch, 2, 1), heads(batch, 2, 2)
    torch.testing.assert_close(by_mask(q, [k], [v], batch), masked(q, k, v, batch), rtol=1e-5, atol=1e-6)


def test_documents_do_not_see_one_another() -> None:
    batch = trial_batch(100)
    q, k, v = heads(batch, 4, 0), heads(batch, 2, 1), heads(batch, 2, 2)
    before = by_mask(q, [k], [v], batch)
    with torch.no_grad():
        v[:100] += 1.0
    after = by_mask(q, [k], [v], batch)
    assert not torch.equal(before[:100], after[:100])
    assert torch.equal(before[100:], after[100:])


def test_a_kernel_is_proven_before_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    class Wrong(WrittenOut):
        def backward(self, grad, given, out, lse, batch):
            dq, dk, dv = super().backward(grad, given, out, lse, batch)
            return dq * 0.9, dk, dv

    class Missing(WrittenOut):
        def forward(self, *_):
            raise RuntimeError("no such kernel\nbacktrace")

    device = torch.device("cpu")
    right = WrittenOut()
    assert proven(right, 4, 2, 8, device) is right
    assert proven(Wrong(), 4, 2, 8, device) is None
    assert "off by 0.09" in capsys.readouterr().err
    assert proven(Missing(), 4, 2, 8, device) is None
    assert "(no such kernel)" in capsys.readouterr().err
