"""Acceptance length from right and wrong guesses: averaged over positions, and walked through as a server would. No torch.

Both with the bonus token, as SGLang (`accept_length`) and vLLM (mean acceptance length) report it, and without, as some
trainers do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 1000


@dataclass(frozen=True)
class Answer:
    """One answer of a document: of each place that could begin a chain, how many guesses in a row were right.

    Place 0 is given the answer's first token, which the server has from the prompt, and guesses the second.
    """

    document: int
    runs: Sequence[int]


def served(answer: Answer, k: int) -> tuple[int, int]:
    """Return tokens and verify steps of a server that drafts k at a time: it takes a run and one token more each time."""
    place, steps = 0, 0
    while place < len(answer.runs):
        place += min(answer.runs[place], k) + 1
        steps += 1
    return len(answer.runs), steps


def averaged(answer: Answer, k: int) -> tuple[int, int]:
    """Return right guesses and places, every place counted alike."""
    return sum(min(run, k) for run in answer.runs), len(answer.runs)


def interval(pairs: list[tuple[int, int]], seed: int = 0) -> tuple[float, float, float]:
    """Return the ratio of sums, and where 95 % of its resamples over documents lie."""
    whole = _ratio(pairs)
    chance = random.Random(seed)  # noqa: S311 - a resampling
    found = sorted(_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return whole, found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1]


def _ratio(pairs: list[tuple[int, int]]) -> float:
    below = sum(each[1] for each in pairs)
    return sum(each[0] for each in pairs) / below if below else 0.0


def lengths(answers: list[Answer], k: int) -> dict[str, dict[str, float]]:
    """Return acceptance lengths at k, both kinds, with and without the bonus token, and the interval of the one with it."""
    found = {}
    for name, count, bonus in (("served", served, 0), ("all_positions", averaged, 1)):
        by_document: dict[int, tuple[int, int]] = {}
        for answer in answers:
            above, below = count(answer, k)
            was = by_document.get(answer.document, (0, 0))
            by_document[answer.document] = (was[0] + above, was[1] + below)
        whole, low, high = (each + bonus for each in interval(list(by_document.values())))
        found[name] = {
            "with_bonus": round(whole, 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "without_bonus": round(whole - 1, 4),
        }
    return found
