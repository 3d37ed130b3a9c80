"""What a live acceptance length means beside what was promised: a word, and reasons where it is a bad one. Pure."""

import random
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Word = Literal["ok", "worse than promised", "broken", "measured"]
EXIT_CODES: dict[Word, int] = {"ok": 0, "measured": 0, "worse than promised": 9, "broken": 13}
BROKEN_BELOW = 1.05
"""Tokens a step, 1 being none of the draft's: a random draft gets 1.00 to 1.02."""
NEAR = 0.05
UNKNOWN = (
    "its tensors fit and its guesses are wrong: trained for another target, or on states of other layers than the engine"
    " reads"
)
OTHER_PROMPTS = (
    "nothing is wrong with its files: other prompts than the estimate's, another temperature, or an estimate that"
    " flatters"
)
DRAWS, SEED, TAIL = 1000, 1, 0.025


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one answer, or of a few together: `tokens` that the steps of the target brought, and how many steps."""

    tokens: float
    steps: float


class Length(msgspec.Struct, frozen=True, kw_only=True):
    """An acceptance length, with the bonus token, and where it lies with 95 %; None where that is not known."""

    value: float
    low: float | None = None
    high: float | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The word, in a sentence, with what could be the reason."""

    word: Word
    text: str
    reasons: tuple[str, ...] = ()


def length_of(parts: Sequence[Part]) -> Length | None:
    """Return the acceptance length of all parts, with an interval by drawing them anew; None where no step was made."""
    steps = sum(one.steps for one in parts)
    if not steps:
        return None
    value = sum(one.tokens for one in parts) / steps
    if len(parts) < 2:  # noqa: PLR2004 - one says nothing of its noise
        return Length(value=value)
    rng = random.Random(SEED)  # noqa: S311 - no secret
    drawn = sorted(_drawn(parts, rng) for _ in range(DRAWS))
    return Length(value=value, low=drawn[int(TAIL * DRAWS)], high=drawn[int((1 - TAIL) * DRAWS)])


def _drawn(parts: Sequence[Part], rng: random.Random) -> float:
    some = rng.choices(parts, k=len(parts))
    steps = sum(one.steps for one in some)
    return sum(one.tokens for one in some) / steps if steps else 1.0


def promised_in(held: Any, steps: int) -> Length | None:
    """Return the promise in the JSON of `vigil draft eval` for so many steps; None where it makes none."""
    lengths = held.get("acceptance_length") if isinstance(held, dict) else None
    one = lengths.get(str(steps)) if isinstance(lengths, dict) else None
    told = one.get("served") if isinstance(one, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("with_bonus"), int | float):
        return None
    low, high = told.get("low"), told.get("high")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return Length(value=float(told["with_bonus"]), low=float(low), high=float(high))
    return Length(value=float(told["with_bonus"]))


def judge(live: Length | None, promised: Length | None, reasons: Sequence[str]) -> Judged:
    """Return the word for a live length beside a promise; `reasons` are told where it is a bad one."""
    if live is None:
        return Judged(
            word="broken", text="no step verified a draft: speculation is off, or not told", reasons=tuple(reasons)
        )
    if live.value < BROKEN_BELOW:
        text = f"{live.value:.2f} tokens a step: next to nothing that it drafts is accepted"
        return Judged(word="broken", text=text, reasons=tuple(reasons) or (UNKNOWN,))
    if promised is None:
        return Judged(word="measured", text=f"{_told(live)} tokens a step; nothing was promised")
    text = f"{_told(live)} tokens a step live, {_told(promised)} promised: {live.value / promised.value - 1:+.1%}"
    if live.value >= promised.value * (1 - NEAR) or _overlap(live, promised):
        return Judged(word="ok", text=text)
    return Judged(word="worse than promised", text=text, reasons=tuple(reasons) or (OTHER_PROMPTS,))


def _overlap(live: Length, promised: Length) -> bool:
    """Say whether both could be the same: a promise without an interval is a point."""
    if live.low is None or live.high is None:
        return False
    low = promised.low if promised.low is not None else promised.value
    high = promised.high if promised.high is not None else promised.value
    return live.low <= high and low <= live.high


def _told(one: Length) -> str:
    return f"{one.value:.2f}" + (f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None else "")
