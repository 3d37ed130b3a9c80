"""States of rows, from the target in process or from files, kept in memory as far as it goes.

A row's states never change, so epochs after the first take them from memory: that saves the target's share of a step (a
third, for a target of 135M), for 8 bytes x hidden size a token.
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
    """Of each token: the states at the boundaries, the state before the final norm, and what the target says next."""

    aux: torch.Tensor
    last: torch.Tensor
    greedy: torch.Tensor


class Source:
    """Gives the states of rows of a corpus, in the order of their numbers; `read` takes them from files."""

    def __init__(
        self,
        target: Target,
        corpus: Corpus,
        read: Callable[[list[int], Batch], tuple[torch.Tensor, torch.Tensor]] | None = None,
        keep_gib: float | None = None,
    ) -> None:
        self.target, self.corpus, self.read = target, corpus, read
        free = torch.cuda.mem_get_info(target.device)[0] * SHARE_OF_FREE if target.device.type == "cuda" else CPU_BYTES
        free = free if keep_gib is None else keep_gib * 2**30
        width = target.embedding.shape[1] * (len(target.boundaries) + 1) * target.embedding.element_size() + 8
        self.row_bytes = width * corpus.length
        self.room = int(free // self.row_bytes)
        self.kept: dict[int, States] = {}

    def of(self, rows: list[int]) -> tuple[Batch, States]:
        """Return the batch of these rows, on the target's device, and its states."""
        batch = self.corpus.batch(rows).to(self.target.device)
        if all(row in self.kept for row in rows):
            held = [self.kept[row] for row in rows]
            return batch, States(
                *(torch.cat([getattr(each, name) for each in held]) for name in ("aux", "last", "greedy"))
            )
        found = self.computed(rows, batch)
        for place, row in enumerate(rows):
            if len(self.kept) < self.room:
                self.kept[row] = States(
                    *(
                        x[place * batch.length : (place + 1) * batch.length].clone()
                        for x in (found.aux, found.last, found.greedy)
                    )
                )
        return batch, found

    def computed(self, rows: list[int], batch: Batch) -> States:
        """Compute or read them; on the CPU row by row, so that a row's states do not depend on which rows stand beside it."""
        if self.read is None and self.target.device.type == "cpu" and len(rows) > 1:
            parts = [self.computed([row], self.corpus.batch([row])) for row in rows]
            return States(*(torch.cat([getattr(part, name) for part in parts]) for name in ("aux", "last", "greedy")))
        aux, last = self.read(rows, batch) if self.read else self.target.states(batch)
        kind = self.target.embedding.dtype  # files hold bf16
        return States(aux.to(kind), last.to(kind), self.target.greedy(last.to(kind)))
