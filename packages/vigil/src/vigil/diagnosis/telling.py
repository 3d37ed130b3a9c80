"""Puts a cause together: the chosen line, its words, its advice, and the lines around it."""

import re
from typing import NamedTuple

from vigil.diagnosis.candidates import Candidate
from vigil.diagnosis.cause import Cause
from vigil.diagnosis.fingerprint import fingerprint
from vigil.diagnosis.rules import AdviceFor
from vigil.diagnosis.select import Choice, signal_name
from vigil.diagnosis.text import LogText

AROUND = 3
"""Lines shown before and after the cause."""
_LONGEST_GROUP = 1000
_PLACE = re.compile(r"\{(\w+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Setting(NamedTuple):
    """What an advice and a cause depend on besides the log: the engine, its version, the log's name."""

    engine: str | None = None
    version: str | None = None
    file: str | None = None


def tell(log: LogText, choice: Choice, setting: Setting) -> Cause:
    """Return the cause that was chosen, in the words of its rule and its line."""
    candidate, rule = choice.candidate, choice.candidate.rule
    index = candidate.line
    line = log.lines[index] if index >= 0 else None
    text = log.shown[index] if line is not None else choice.words
    said = log.texts[index] if line is not None else text
    known = f"{said} at {candidate.where}" if rule.generic and candidate.where else said
    return Cause(
        code=rule.code,
        kind=candidate.kind or rule.kind,
        title=rule.title,
        text=text,
        advice=_advice(candidate, setting),
        fingerprint=fingerprint(known),
        file=setting.file,
        line=line.number if line is not None else None,
        when=_stamp(log, candidate),
        rank=_rank(log, candidate),
        sure=choice.sure,
        retry=rule.retry,
        around=_around(log, index),
    )


def _rank(log: LogText, candidate: Candidate) -> str | None:
    """Return the rank in the line's prefix, or in that of the traceback's first line (SGLang writes it there only)."""
    return next((rank for index in _places(candidate) if (rank := log.read(index).rank)), None)


def _stamp(log: LogText, candidate: Candidate) -> str | None:
    return next((stamp for index in _places(candidate) if (stamp := log.read(index).stamp)), None)


def _places(candidate: Candidate) -> list[int]:
    return [index for index in (candidate.line, candidate.head) if index is not None and index >= 0]


def _around(log: LogText, index: int) -> tuple[tuple[int, str], ...]:
    """Return the lines around `index`; before the end of the log where the cause has no line of its own."""
    middle = index if index >= 0 else len(log)
    shown = range(max(0, middle - AROUND), min(len(log), middle + AROUND + 1))
    return tuple((log.lines[i].number, log.shown[i]) for i in shown)


def _advice(candidate: Candidate, setting: Setting) -> str:
    """Fill the rule's advice with what its pattern found, without the log's control characters."""
    groups = {name: _CONTROL.sub("?", value)[:_LONGEST_GROUP] for name, value in candidate.groups}
    if groups.get("number", "").isdigit():
        groups.setdefault("signal", signal_name(int(groups["number"])))
    return _PLACE.sub(lambda match: groups.get(match[1], ""), _words(candidate, setting))


def _words(candidate: Candidate, setting: Setting) -> str:
    """Return the nearest advice: this way of seeing it on this engine, this way, the rule on this engine, the rule."""
    for part in (candidate.when, candidate.rule):
        if part is None:
            continue
        fitting: tuple[AdviceFor, ...] = tuple(a for a in part.advice_for if a.fits(setting.engine, setting.version))
        if fitting:
            return fitting[0].advice
        if part.advice:
            return part.advice
    return ""
