"""A small batch on which two ways to compute the same are compared before one of them is trusted."""

from __future__ import annotations

import torch

from vigil_draft.states.batch import Batch

LENGTH = 256
BOUNDS = (0, 100, 256, 300, 511, 512)
"""Documents of several lengths, of one token too."""


def trial_batch(vocabulary: int) -> Batch:
    """Return two rows of 256 tokens with five documents."""
    chance = torch.Generator().manual_seed(0)
    bounds = torch.tensor(BOUNDS)
    lengths = bounds.diff()
    document = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    return Batch(
        token_ids=torch.randint(0, vocabulary, (2 * LENGTH,), generator=chance),
        loss_mask=torch.ones(2 * LENGTH, dtype=torch.bool),
        document=document,
        positions=torch.arange(2 * LENGTH) - bounds[document],
        bounds=bounds.to(torch.int32),
        longest=int(lengths.max()),
        length=LENGTH,
    )
