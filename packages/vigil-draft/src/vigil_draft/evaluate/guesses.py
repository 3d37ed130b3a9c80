"""A draft's guesses on documents that it has not seen, beside what the target says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from vigil_draft.evaluate.acceptance import Answer
from vigil_draft.learn.draft import ahead
from vigil_draft.learn.step import counted

if TYPE_CHECKING:
    from vigil_draft.learn.draft import Draft
    from vigil_draft.states.batch import Batch, Corpus
    from vigil_draft.states.target import Target

GUESSES_AT_ONCE = 4096


@dataclass
class Guesses:
    """Sums over all places, and the runs of each answer."""

    places: int = 0
    right: list[int] = field(default_factory=list)
    joint: list[int] = field(default_factory=list)
    possible: list[int] = field(default_factory=list)
    covered: int = 0
    as_said: int = 0
    answers: list[Answer] = field(default_factory=list)


@torch.no_grad()
def guess(draft: Draft, target: Target, corpus: Corpus, steps: int, rows_at_once: int) -> Guesses:
    """Run the draft's chains at every place of every answer; right is the target's greedy token over its whole vocabulary."""
    found = Guesses(right=[0] * steps, joint=[0] * steps, possible=[0] * steps)
    inside = torch.zeros(len(target.embedding), dtype=torch.bool, device=target.device)
    inside[draft.vocabulary] = True
    for begin in range(0, len(corpus.rows), rows_at_once):
        batch = corpus.batch(list(range(begin, min(begin + rows_at_once, len(corpus.rows))))).to(target.device)
        aux, last = target.states(batch)
        greedy = target.greedy(last)
        # A chain can begin where a token of the answer was just said and another one follows.
        begins = counted(batch, 1) & counted(batch, 2)
        found.places += int(begins.sum())
        found.covered += int((inside[ahead(greedy, 1)] & begins).sum())
        found.as_said += int(((ahead(batch.token_ids, 2) == ahead(greedy, 1)) & begins).sum())
        alive, runs = begins, torch.zeros_like(batch.token_ids)
        with torch.autocast(target.device.type, torch.bfloat16, enabled=target.device.type == "cuda"):
            for step, (normed, _) in enumerate(draft.unroll(batch, aux, steps)):
                best = torch.cat([draft.lm_head(part).argmax(-1) for part in normed.split(GUESSES_AT_ONCE)])
                possible = counted(batch, step + 2) & begins
                right = (draft.vocabulary[best] == ahead(greedy, step + 1)) & possible
                alive = alive & right
                runs += alive
                for sums, each in ((found.right, right), (found.joint, alive), (found.possible, possible)):
                    sums[step] += int(each.sum())
        found.answers.extend(_answers(batch, begins, runs))
    return found


def _answers(batch: Batch, begins: torch.Tensor, runs: torch.Tensor) -> list[Answer]:
    """Return the runs of each stretch of places: an answer; a document of several turns has several."""
    places = begins.nonzero().squeeze(1).tolist()
    document, run = batch.document.tolist(), runs.tolist()
    found: list[Answer] = []
    stretch: list[int] = []
    for place, following in zip(places, [*places[1:], -1], strict=True):
        stretch.append(run[place])
        if following != place + 1 or document[following] != document[place]:
            found.append(Answer(document[place], stretch))
            stretch = []
    return found
