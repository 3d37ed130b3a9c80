"""The texts that make a line of a log worth keeping, for a scanner that reads gigabytes and keeps few lines.

`examine` gives the same answer on the lines that these texts keep as on all lines (but for what it shows around a
cause).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from vigil.diagnosis import flow, health, speculation, standstill
from vigil.diagnosis.candidates import ERROR_WORDS, SOON
from vigil.diagnosis.reader import CHAINED, FRAME, HEAD, LONGEST, USAGES
from vigil.diagnosis.rules import Reading, Rule, RuleSet, how_to_read, known_rule_set, known_rules
from vigil.diagnosis.stages import SERVING, WARMING_UP
from vigil.diagnosis.upward import IGNORED
from vigil.engine_table import EngineTable
from vigil.ready_lines import ready_lines

_USAGE_LINES = 600
"""SGLang 0.5.23 prints 478 lines of usage."""
_ENDS = 10
"""Lines of a text that a working server prints for ever which are needed of each attempt: so many first and last."""
_BARS = ("%|", "checkpoint shards:", "loading shards:", "Loading weights:", "Capturing batches", "Capturing CUDA graph")
_BEFORE_USAGE = ("\n", "  ", "| ")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A text that makes a line worth keeping, and so many lines `after` it. One that begins with a newline begins a line.

    `ends`: of the lines that hold this text and no other, only so many at the beginning and at the end of an attempt
    are needed; None: all.
    """

    text: str
    after: int = 0
    ends: int | None = None


class WantedTexts(msgspec.Struct, frozen=True, kw_only=True):
    """All texts that make a line worth keeping; each stands once.

    The last line of an attempt that is not blank is worth keeping, too: a start may stand there.
    """

    texts: tuple[Wanted, ...]


def wanted(tables: Sequence[EngineTable] = (), rules: Sequence[Rule] = ()) -> WantedTexts:
    """Return what must be kept of a log; with the signs of the engines' `tables` and a user's own `rules`."""
    rule_set = RuleSet(known_rules().values(), rules) if rules else known_rule_set()
    # What only mutes a line need not be kept for its own sake.
    muting = set(how_to_read().harmless) - rule_set.texts - {IGNORED, *health.NO_ANSWER}
    texts = {text: Wanted(text=text) for text in searched(rule_set, how_to_read()) if text not in muting}
    texts.update((text, Wanted(text=text)) for table in tables for text in _signs(table))
    for text in (*_endless(), *(text for table in tables for text in _moving(table))):
        texts[text] = Wanted(text=text, ends=_ENDS)
    for text in USAGES:
        del texts[text]  # "token usage:" stands in every line of a server that works
        texts.update((before + text, Wanted(text=before + text, after=_USAGE_LINES)) for before in _BEFORE_USAGE)
    texts[HEAD] = Wanted(text=HEAD, after=LONGEST + SOON)
    texts[FRAME] = Wanted(text=FRAME, after=3)
    return WantedTexts(texts=tuple(texts[text] for text in sorted(texts)))


def searched(rules: RuleSet, reading: Reading) -> Iterator[str]:
    """Return every text that a diagnosis looks for."""
    yield from rules.texts
    for texts in (reading.relays, reading.harmless, reading.harmless_heads, reading.stopped):
        yield from texts
    yield from (*ready_lines(None), *reading.gone, *reading.versions, *reading.served.told)
    yield from (text for stage in reading.stage for text in stage.texts)
    yield from (stall.text for stall in reading.stall)
    yield from (HEAD, FRAME, *CHAINED, *USAGES, *ERROR_WORDS)
    yield from (*flow.ALIVE, *flow.ANSWERS)
    yield from (
        *speculation.ACCEPTED,
        *speculation.ASKED,
        *speculation.FAILED,
        *speculation.REFUSED,
        *speculation.WORKED,
    )
    yield from speculation.ANSWERED
    yield from (*standstill.BLOCKED, *standstill.WAITED)
    yield from (*health.NO_ANSWER, *health.IMPATIENT, *health.DIED, *health.WARM_BEGIN, *health.WARM_END)


def _signs(table: EngineTable) -> Iterable[str]:
    return (*(sign.text for sign in table.signs), *table.ready_lines, *table.banners)


def _moving(table: EngineTable) -> Iterable[str]:
    """Return the texts that an engine prints again and again: bars, and lines of work."""
    bars = (sign.text for sign in table.signs if sign.pattern and "(?P<done>" in sign.pattern)
    return (*bars, *table.alive_lines)


def _endless() -> Iterable[str]:
    """Return the texts that any working server prints for ever."""
    serving = (text for stage in how_to_read().stage if stage.name in {WARMING_UP, SERVING} for text in stage.texts)
    return (
        *flow.ALIVE,
        *flow.ANSWERS,
        *speculation.ACCEPTED,
        *speculation.WORKED,
        *speculation.ANSWERED,
        *_BARS,
        *how_to_read().stopped,
        *serving,
    )
