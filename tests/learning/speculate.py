"""Greedy speculative decoding written out, without any cache: what a server does, and what an estimate must foretell."""

from __future__ import annotations

import torch

from vigil_draft.learn.draft import Draft
from vigil_draft.states.batch import Batch
from vigil_draft.states.target import Target


def as_batch(tokens: list[int]) -> Batch:
    size = len(tokens)
    return Batch(
        token_ids=torch.tensor(tokens),
        loss_mask=torch.ones(size, dtype=torch.bool),
        document=torch.zeros(size, dtype=torch.int64),
        positions=torch.arange(size),
        bounds=torch.tensor([0, size], dtype=torch.int32),
        longest=size,
        length=size,
    )


@torch.no_grad()
def speculate(target: Target, draft: Draft, prompt: list[int], new: int, k: int) -> tuple[list[int], int]:
    """Return the answer's tokens and the number of verify steps that followed its first token."""
    aux, last = target.states(as_batch(prompt))
    said = [int(target.greedy(last[-1:]))]
    steps = 0
    while len(said) < new:
        known = [*prompt, *said]
        place = len(known) - 2  # the last token whose states the target has computed
        aux, _ = target.states(as_batch(known[:-1]))
        padded = torch.cat([aux, aux[-1:].expand(1, -1)])
        chain: list[int] = []
        for step in range(k):
            whole = as_batch([*known, *chain])
            states = torch.cat([padded, padded[-1:].expand(len(chain), -1)])
            *_, (normed, _) = draft.unroll(whole, states, step + 1)
            chain.append(int(draft.vocabulary[draft.lm_head(normed[place]).argmax()]))
        _, last = target.states(as_batch([*known, *chain]))
        right = target.greedy(last[place + 1 :]).tolist()
        run = next((n for n, (a, b) in enumerate(zip(chain, right, strict=False)) if a != b), k)
        said += right[: run + 1]
        steps += 1
    return said[:new], steps
