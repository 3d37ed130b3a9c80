"""A few documents before the thousands: whether a server's states are those of this target, at these boundaries, of these tokens.

The first boundary is computed here from the target's own first layers; the state before the final norm must lead to the token
that the server says next; a document that is asked for again must bring the same states, whatever was cached. A layer, a norm or
a token that is off makes states that are wrong by some tenths; bf16 makes some hundredths.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import torch

from vigil.errors import UsageError
from vigil_draft.states.part import Part, head_of
from vigil_draft.states.served.asking import Given, Shape

MOST_OFF = 0.3
"""SmolLM2-135M at boundary 2: 0.02 by bf16 at the worst token; one layer or token beside it 0.27 and more at the median.

Weights that a server quantised at its start are off by more than bf16, so the nearest boundary decides as well.
"""
NEAR = 0.1
"""Below it states are named as those of another boundary."""
MOST_UNSTEADY = 0.15
"""Of a second answer from the first: one engine, the same tokens, another batch."""
OF_TOKENS = 0.95
"""Answers that repeat themselves look alike one token beside, but for their prompts; a few tokens may take other experts."""
FEWEST_FOLLOW = 0.5
"""Of documents whose next token follows from the last state: 0.94 in bf16 on random tokens, 0.09 a layer or norm beside it."""
MOST_TOKENS = 512


def off(states: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return how far states [T, H] are from others, relative to those: no more at 95 % of the tokens."""
    distance = (states.float() - wanted.float()).norm(dim=-1) / wanted.float().norm(dim=-1).clamp_min(1e-6)
    return float(distance.quantile(OF_TOKENS))


def must_be_same(url: str, once: Given, again: Given) -> None:
    """Refuse a server whose second answer differs from its first."""
    for place in range(once.states.shape[1]):
        if not (found := off(again.states[:, place], once.states[:, place])) < MOST_UNSTEADY:
            raise UsageError(
                f"{url} gave other states when it was asked again (off by {found:.2f}): its prefix cache leaves some out:"
                " start it with --no-enable-prefix-caching"
            )


async def check(url: str, shape: Shape, part: Part, documents: Sequence[list[int]], given: Sequence[Given]) -> str:
    """Hold a few documents' states to the target's own weights; return in words what was found.

    Raises:
        UsageError: They are those of another model, layer or token.

    """
    return await asyncio.to_thread(_checked, url, shape, part, documents, given)


def _checked(url: str, shape: Shape, part: Part, documents: Sequence[list[int]], given: Sequence[Given]) -> str:
    first = min(range(len(shape.boundaries)), key=lambda place: shape.boundaries[place])
    boundary = shape.boundaries[first]
    computed = part.of_tokens(torch.tensor(documents[0][:MOST_TOKENS]))
    offs = [off(given[0].states[:MOST_TOKENS, first], each) for each in computed]
    found = offs[boundary]
    if not found < MOST_OFF:
        nearest = offs.index(min(offs))
        what = f"they are those of boundary {nearest}" if offs[nearest] < NEAR else "another model, layer or token"
        raise UsageError(
            f"{url} gives other states than the target at boundary {boundary} (off by {found:.2f}): {what}"
        )
    if found > min(offs):
        raise UsageError(f"{url} gives the states of boundary {offs.index(min(offs))} for those of boundary {boundary}")
    head = head_of(part.folder)
    said = [int((part.normed(one.states[-1, -1]) @ head.T).argmax()) for one in given]
    follow = sum(word == one.following for word, one in zip(said, given, strict=True))
    if follow < FEWEST_FOLLOW * len(given):
        raise UsageError(
            f"{url}: what it says next follows from its last state in {follow} of {len(given)} documents: that state is after the"
            " final norm, of another token or layer, or of another model"
        )
    return f"boundary {boundary} is the target's (off by {found:.3f}), and {follow} of {len(given)} next tokens follow"
