"""Packed rows: whole documents side by side in rows of one length, that never see one another.

A document longer than a row is cut. Padding is a document of its own that nothing counts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from vigil.errors import UsageError

if TYPE_CHECKING:
    from vigil_draft.data.prepared import Documents

OPEN_ROWS = 64
"""Rows that still take a document while rows are filled: 64 leave less than 2 % of padding at chat lengths."""
SHORTEST = 3
"""Tokens: a draft sees one, is given the second, and guesses the third."""


@dataclass(frozen=True)
class Batch:
    """Rows one after another, flat: T = rows x length."""

    token_ids: torch.Tensor
    loss_mask: torch.Tensor
    document: torch.Tensor
    """Of each token, a number that differs from the next document's; -1 in padding."""
    positions: torch.Tensor
    bounds: torch.Tensor
    """int32: where each document (and padding) begins, and T."""
    longest: int
    length: int

    def to(self, device: torch.device) -> Batch:
        """Move it."""
        ids, mask, document, positions, bounds = (
            x.to(device, non_blocking=True)
            for x in (self.token_ids, self.loss_mask, self.document, self.positions, self.bounds)
        )
        return Batch(ids, mask, document, positions, bounds, self.longest, self.length)


class Corpus:
    """Documents as tensors, and the rows that they were packed into: the same for the same seed and length."""

    def __init__(self, docs: Documents, length: int, seed: int) -> None:
        self.token_ids = torch.tensor(docs.token_ids, dtype=torch.int64)
        self.loss_mask = torch.frombuffer(bytearray(docs.loss_mask), dtype=torch.bool)
        self.starts = list(docs.starts)
        self.length = length
        self.rows = self._pack(random.Random(seed))  # noqa: S311 - an order of training, no secret
        if not self.rows:
            raise UsageError("the data has no document with a token that counts")

    def span(self, number: int) -> tuple[int, int]:
        """Return where a document begins and ends, cut to a row's length."""
        begin = self.starts[number]
        return begin, min(self.starts[number + 1], begin + self.length)

    @property
    def loss_tokens(self) -> torch.Tensor:
        """Token ids that count, over all documents that are used."""
        return self.token_ids[self.loss_mask]

    def _pack(self, chance: random.Random) -> list[list[int]]:
        order = []
        for number in range(len(self.starts) - 1):
            begin, end = self.span(number)
            if end - begin >= SHORTEST and bool(self.loss_mask[begin:end].any()):
                order.append(number)
        chance.shuffle(order)
        done: list[list[int]] = []
        opened: list[tuple[int, list[int]]] = []  # room, documents
        for number in order:
            begin, end = self.span(number)
            place = next((i for i, (room, _) in enumerate(opened) if room >= end - begin), None)
            room, row = opened.pop(place) if place is not None else (self.length, [])
            opened.append((room - (end - begin), [*row, number]))
            if len(opened) > OPEN_ROWS:
                opened.sort(key=lambda each: -each[0])
                done.append(opened.pop()[1])
        done.extend(row for _, row in opened)
        chance.shuffle(done)
        return done

    def batch(self, rows: list[int]) -> Batch:
        """Return the rows of these numbers as one batch."""
        size = len(rows) * self.length
        ids, mask = torch.zeros(size, dtype=torch.int64), torch.zeros(size, dtype=torch.bool)
        document = torch.full((size,), -1, dtype=torch.int64)
        positions, bounds = torch.zeros(size, dtype=torch.int64), [0]
        for place, number in enumerate(rows):
            at = place * self.length
            for each in self.rows[number]:
                begin, end = self.span(each)
                upto = at + end - begin
                ids[at:upto], mask[at:upto] = self.token_ids[begin:end], self.loss_mask[begin:end]
                document[at:upto], positions[at:upto] = each, torch.arange(end - begin)
                bounds.append(upto)
                at = upto
            if at < (place + 1) * self.length:
                bounds.append((place + 1) * self.length)
                positions[at : bounds[-1]] = torch.arange(bounds[-1] - at)
        longest = max(b - a for a, b in pairwise(bounds))
        return Batch(ids, mask, document, positions, torch.tensor(bounds, dtype=torch.int32), longest, self.length)
