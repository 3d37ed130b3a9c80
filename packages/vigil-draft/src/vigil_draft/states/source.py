"""States of rows, from the target in process or from files, kept in memory as far as it goes.

A row's states never change, so epochs after the first take them from memory: that saves the target's share of a step (a third, for a
target of 135M), for 8 bytes x hidden size a token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch, Corpus
    from vigil_draft.states.target import Target

SHARE_OF_FREE = 0.4
"""Of the device's free memory that states may take; the rest is for the training."""
CPU_BYTES = 2 << 30


@dataclass(frozen=True)
class States:
    """Of each token: the states at the boundaries side by side, the state before the final norm, and what the target says next."""

    aux: torch.Tensor
    last: torch.Tensor
    greedy: torch.Tensor


class Source:
    """Gives the states of rows of a corpus, in the order of their numbers; `read` gives a batch's aux and last states where files are there."""

    def __init__(
        self,
        target: Target,
        corpus: Corpus,
        read: Callable[[list[int], Batch], tuple[torch.Tensor, torch.Tensor]] | None = None,
    ) -> None:
        self.target, self.corpus, self.read = target, corpus, read
        free = torch.cuda.mem_get_info(target.device)[0] * SHARE_OF_FREE if target.device.type == "cuda" else CPU_BYTES
        width = target.embedding.shape[1] * (len(target.boundaries) + 1) * target.embedding.element_size() + 8
        self.room = int(free // (width * corpus.length))
        self.kept: dict[int, States] = {}

    def of(self, rows: list[int]) -> tuple[Batch, States]:
        """Return the batch of these rows, on the target's device, and its states."""
        batch = self.corpus.batch(rows).to(self.target.device)
        if all(row in self.kept for row in rows):
            held = [self.kept[row] for row in rows]
            return batch, States(
                *(torch.cat([getattr(each, name) for each in held]) for name in ("aux", "last", "greedy"))
            )
        aux, last = self.read(rows, batch) if self.read else self.target.states(batch)
        found = States(aux, last, self.target.greedy(last))
        for place, row in enumerate(rows):
            if len(self.kept) < self.room:
                part = slice(place * batch.length, (place + 1) * batch.length)
                self.kept[row] = States(aux[part].clone(), last[part].clone(), found.greedy[part].clone())
        return batch, found
