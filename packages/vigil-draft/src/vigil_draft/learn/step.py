"""One step of training: the losses of a chain's guesses, and how many were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from vigil_draft.learn.draft import ahead
from vigil_draft.learn.loss import SoftLoss

if TYPE_CHECKING:
    from vigil_draft.learn.draft import Draft
    from vigil_draft.states.batch import Batch
    from vigil_draft.states.source import States
    from vigil_draft.states.target import Target

LSE_AT_ONCE = 4096


@dataclass
class Tally:
    """Sums over steps of training; of each chain step: loss, guesses, right ones, and chains that were right up to it."""

    loss: torch.Tensor
    guesses: torch.Tensor
    right: torch.Tensor
    alive: torch.Tensor

    def __add__(self, other: Tally) -> Tally:
        """Add two."""
        return Tally(*(getattr(self, name) + getattr(other, name) for name in ("loss", "guesses", "right", "alive")))

    @property
    def joint(self) -> list[float]:
        """Return of each step the part of chains that were right up to it."""
        return [float(each) for each in self.alive / self.guesses[0].clamp(min=1)]


def counted(batch: Batch, places: int) -> torch.Tensor:
    """Return where the token some places ahead stands in the same document and counts."""
    found = (ahead(batch.document, places) == batch.document) & ahead(batch.loss_mask, places)
    found[len(found) - places :] = False
    return found


class Objective:
    """The target's part of the loss: its distribution over the draft's words, masked where its own word is not among them."""

    def __init__(self, draft: Draft, target: Target) -> None:
        self.draft, self.target = draft, target
        self.head = target.head[draft.vocabulary].contiguous()
        self.inside = torch.zeros(len(target.embedding), dtype=torch.bool, device=target.device)
        self.inside[draft.vocabulary] = True

    def losses(self, batch: Batch, states: States, steps: int, decay: float) -> tuple[torch.Tensor, Tally]:
        """Return the loss (its steps weighed by decay^i, each a mean over what counts) and the tally."""
        wanted = self.target.logits(states.last, self.head)
        wanted_lse = torch.cat([part.float().logsumexp(-1) for part in wanted.split(LSE_AT_ONCE)])
        total = torch.zeros((), device=wanted.device)
        alive, sums = counted(batch, 2), []
        for step, (normed, _) in enumerate(self.draft.unroll(batch, states.aux, steps)):
            places = counted(batch, step + 2).nonzero().squeeze(1)
            rows = places + step + 1
            said = states.greedy[rows]
            counts = self.inside[said]
            loss, best = SoftLoss.apply(normed[places], self.draft.lm_head.weight, wanted, wanted_lse, rows, counts)
            loss = loss / counts.sum().clamp(min=1)
            total = total + decay**step * loss
            right = torch.zeros_like(alive).index_put_((places,), self.draft.vocabulary[best] == said)
            alive = alive & right
            sums.append(
                torch.stack([loss.detach(), loss.new_tensor(len(places)), right.sum().float(), alive.sum().float()])
            )
        return total, Tally(*torch.stack(sums, dim=1))
