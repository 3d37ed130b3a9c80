"""Sees speculation that gives nothing in a server that runs: it is off although it was asked for, or hardly accepted.

"Off" is the absence of a line, so it is told only where tokens flowed for long enough that the line had to come. Told
apart from "broken" by its code: SPEC001 is off, SPEC002 is on and gives nothing, SPEC003 is right and hardly used.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from vigil.diagnosis.text import LogText

OFF, SLOW, UNUSED = "SPEC001", "SPEC002", "SPEC003"
ACCEPTED = ("accept len:", "SpecDecoding metrics:", "Speculative metrics:", "draft acceptance")
_COMMANDS = ("--spec", "-md ", "--model-draft ")
ASKED = (
    "server_args=",
    "non-default args:",
    "LLM engine (v",
    "args: Namespace(",
    "loading draft model",
    "creating MTP draft context",
    *_COMMANDS,
)
FAILED = ("failed to initialize speculative decoding context",)
REFUSED = (
    "speculative decoding not supported by this context",
    "no implementations specified for speculative decoding",
)
"""llama-server (2026) says it of contexts that nobody asked to speculate, too."""
WORKED = ("Decode batch", "Avg generation throughput:", "eval time =", "launch_slot_")
ANSWERED = ("stop processing", "launch_slot_", "all slots are idle")
"""llama-server tells of acceptance behind the times, and then of the end of the answer."""
DEAD_LEN, WEAK_LEN, WEAK_RATE, DEAD_RATE = 1.15, 1.4, 0.3, 0.05
"""Tokens a step (1 is none of the draft's), and drafted tokens accepted, below which a draft does not pay its way."""
WEAK_STEPS = 0.25
_LATEST = 5
"""Lines of acceptance that must agree before a slow draft is called one; fewer where there are not so many."""
_FALLEN = 0.6
_LONG_TOKENS = 64
"""An answer of so many tokens has something drafted in it."""
_FEW_DRAFTED, _MANY_ACCEPTED, _LONG_ANSWER = 2.0, 0.9, 200

_LEN = re.compile(r"accept len: (?P<len>[\d.]+)|[Mm]ean acceptance length: (?P<mean>[\d.]+)")
_RATE = re.compile(
    r"draft acceptance(?: rate)? = (?P<llama>[\d.]+)(?: \( *(?P<taken>\d+) accepted / *(?P<made>\d+) generated)?"
    r"|Draft acceptance rate: (?P<v0>[\d.]+)(?P<percent>%)?"
)
_TOKENS = re.compile(r"(?<!prompt )eval time = *[\d.]+ ms / *(?P<tokens>\d+) (?:tokens|runs)")
_SGLANG_ON = re.compile(r"speculative_algorithm='(?P<name>\w+)'")
_COMMAND_ON = re.compile(r"--spec(?:ulative)?-(?:algo|config|type|draft|model)|(?:^|\s)(?:-(?:md|sc)|--model-draft)\s")
_STEPS = re.compile(r"speculative_num_steps=(?P<sglang>\d{1,3})\b|num_spec(?:ulative)?_tokens=(?P<vllm>\d{1,3})\b")
_MODEL = re.compile(
    r"speculative_algorithm='(?:EAGLE3?|NEXTN|STANDALONE)'|method='(?:eagle3?|mtp|draft_model|\w+_mtp)'"
)
_MOST_STEPS = 8
_WISH = re.compile(r"speculat|eagle|medusa|draft|[-_/']mtp\b", re.IGNORECASE)
_UNSET = re.compile(r"\b\w+(?:=|'?: )(?:None|False)\b")
"""vLLM to 0.8 prints all its arguments, with those that nobody gave."""
_VLLM_CONFIG = re.compile(r"speculative_config=(?P<value>None|\w)")


class Sight(NamedTuple):
    """What was seen of speculation: the rule's code, the line that gives it away, and words for the advice."""

    code: str
    at: int
    found: str


def find_idle_speculation(log: LogText) -> Sight | None:
    """Return what shows that speculation gives nothing, or None where it works, or was not asked for."""
    accepted = sorted(log.find_any(ACCEPTED))
    asked = _llama_asked(log)
    for failed in sorted(log.find_any((*FAILED, *REFUSED) if asked else FAILED)):
        return Sight(OFF, failed, "its set-up failed, and the server went on without it")
    return _off(log, accepted) or (_slow(log, accepted) if accepted else None)


def _off(log: LogText, accepted: Sequence[int]) -> Sight | None:
    return _vllm_off(log, accepted) or _sglang_off(log, accepted) or _llama_off(log)


def _vllm_off(log: LogText, accepted: Sequence[int]) -> Sight | None:
    """Return the configuration that says None, or the first throughput without the line that belongs to it."""
    engine = next(((i, m) for i in log.find("LLM engine (v") if (m := _VLLM_CONFIG.search(log.lines[i].text))), None)
    if engine is None or accepted:
        return None
    flowed = [
        i for i in log.find("Avg generation throughput:") if not re.search(r"throughput: 0(?:\.0*)? t", log.texts[i])
    ]
    served = [i for i in flowed if i > engine[0]]
    if engine[1]["value"] == "None":
        asked = [i for i in log.find_any(("non-default args:", "args: Namespace(")) if i < engine[0]]
        wish = any(_WISH.search(_UNSET.sub("", log.lines[i].text.partition("args:")[2])) for i in asked)
        return (
            Sight(OFF, engine[0], "the engine's configuration says speculative_config=None")
            if wish and served
            else None
        )
    if served and served[0] < len(log) - 1:
        return Sight(OFF, served[0], "tokens flow, and no line tells of acceptance")
    return None


def _sglang_off(log: LogText, accepted: Sequence[int]) -> Sight | None:
    asked = next((i for i in log.find("server_args=") if _SGLANG_ON.search(log.lines[i].text)), None)
    decodes = [i for i in log.find("Decode batch") if asked is not None and i > asked]
    if len(decodes) > 1 and not accepted:
        return Sight(OFF, decodes[0], "tokens flow, and no decode line tells of acceptance")
    return None


def _llama_off(log: LogText) -> Sight | None:
    """Return the first long answer without an acceptance line behind the last that had one.

    Asked for: a draft was loaded, an earlier answer told of acceptance, or the command in the log says so.
    """
    told = log.find("draft acceptance")
    first = min([*told, *_llama_asked(log)], default=None)
    if first is None:
        return None
    last = max(told, default=first)
    for index in log.find("eval time ="):
        match = _TOKENS.search(log.texts[index])
        long = match is not None and int(match["tokens"]) >= (_LONG_TOKENS if told else _LONG_TOKENS // 2)
        if index > last and long and log.first_after(ANSWERED, index) is not None:
            return Sight(OFF, index, "tokens were made, and nothing was drafted for them")
    return None


def _llama_asked(log: LogText) -> list[int]:
    """Return the lines that show that llama-server was asked to speculate."""
    commands = (i for i in log.find_any(_COMMANDS) if _COMMAND_ON.search(log.texts[i]))
    return [*log.find_any(("loading draft model", "creating MTP draft context")), *commands]


def _slow(log: LogText, accepted: Sequence[int]) -> Sight | None:
    lengths = [(i, float(m["len"] or m["mean"])) for i in accepted if (m := _LEN.search(log.texts[i]))]
    rates = [(i, m) for i in accepted if (m := _RATE.search(log.texts[i]))]
    if lengths:
        return _short(lengths, _steps(log))
    by_rate = [(i, _share(m)) for i, m in rates]
    if by_rate and all(rate < WEAK_RATE for _, rate in by_rate[-_LATEST:]):
        first = _run(by_rate, WEAK_RATE)
        least = max(rate for _, rate in by_rate[-_LATEST:])
        words = "nothing that is drafted is accepted" if least < DEAD_RATE else "little of what is drafted is accepted"
        return Sight(SLOW, first, words)
    return _hardly_drafts(log, rates)


def _steps(log: LogText) -> int:
    """Return how many tokens a draft model drafts ahead; 0 where that is not known, or no model does (n-grams)."""
    for index in sorted(log.find_any(("server_args=", "LLM engine (v"))):
        text = log.lines[index].text
        if (match := _STEPS.search(text)) and _MODEL.search(text):
            return min(int(match["sglang"] or match["vllm"]), _MOST_STEPS)
    return 0


def _share(match: re.Match[str]) -> float:
    """Return the part of the drafted tokens that was accepted, 0 to 1."""
    return float(match["llama"] or match["v0"]) / (100 if match["percent"] else 1)


def _short(lengths: Sequence[tuple[int, float]], steps: int) -> Sight | None:
    """Return the first line of the run of short accept lengths that the log ends with.

    Where it is known how many `steps` a draft model drafts ahead, a quarter of them is the least that pays.
    """
    enough = max(WEAK_LEN, 1 + WEAK_STEPS * steps)
    latest = [length for _, length in lengths[-_LATEST:]]
    if max(latest) <= DEAD_LEN:
        return Sight(SLOW, _run(lengths, DEAD_LEN), "nothing that is drafted is accepted")
    if max(latest) <= enough:
        return Sight(SLOW, _run(lengths, enough), "little of what is drafted is accepted")
    return _fallen(lengths)


def _fallen(lengths: Sequence[tuple[int, float]]) -> Sight | None:
    """Return the first line of the run of accept lengths that are far below those of the beginning.

    Accept lengths differ much from one moment to the next: of few lines, all must go down.
    """
    values = [length for _, length in lengths]
    quarter = min(_LATEST, len(values) // 4)
    if not quarter or (quarter == 1 and values != sorted(values, reverse=True)):
        return None
    before, after = sum(values[:quarter]) / quarter, values[-quarter:]
    if max(after) >= _FALLEN * before:
        return None
    words = f"it fell from {before:.1f} to {sum(after) / quarter:.1f} tokens a step"
    return Sight(SLOW, _run(lengths, _FALLEN * before), words)


def _run(values: Sequence[tuple[int, float]], limit: float) -> int:
    """Return the line at which the values at the end began to stay at or below `limit`."""
    first = values[-1][0]
    for index, value in reversed(values):
        if value > limit:
            break
        first = index
    return first


def _hardly_drafts(log: LogText, rates: Sequence[tuple[int, re.Match[str]]]) -> Sight | None:
    """Return an answer whose draft was nearly always right and hardly ever asked.

    Nearly all that a draft model made was taken, and yet it made less than two tokens for each step of the target.
    """
    if not log.find("loading draft model"):
        return None
    for index, match in rates:
        line = log.last_before(("eval time =",), index)
        answer = _TOKENS.search(log.texts[line]) if line is not None else None
        if answer is None or match["made"] is None:
            continue
        tokens, taken, made = int(answer["tokens"]), int(match["taken"]), int(match["made"])
        steps = max(1, tokens - taken)
        if tokens >= _LONG_ANSWER and taken >= _MANY_ACCEPTED * made and made < _FEW_DRAFTED * steps:
            return Sight(UNUSED, index, f"only {made} tokens were drafted for {tokens}, though nearly all were right")
    return None
