"""Puts a cause together: the chosen line, its words, its advice, and the lines around it."""

import re
from collections.abc import Sequence

import msgspec

from vigil.diagnosis.candidates import ERROR_WORDS, Candidate
from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.fingerprint import fingerprint
from vigil.diagnosis.reader import HEAD
from vigil.diagnosis.rules import NEEDLES, READING, Rule
from vigil.diagnosis.select import Choice, choose, signal_name
from vigil.diagnosis.sieve import Wanted
from vigil.diagnosis.text import LogText
from vigil.engine_table import EngineTable
from vigil.facts import Line

AROUND = 3
"""Lines shown before and after the cause."""
_LONGEST_GROUP = 200
_PLACE = re.compile(r"\{(\w+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def diagnose(lines: Sequence[Line], end: End, engine: str | None = None, file: str | None = None) -> Cause | None:
    """Say why an attempt ended, or None where its lines and its end show nothing.

    `lines` are those of one attempt, in order; `end` is how its main process ended; `engine` limits the rules to
    those that suit it; `file` names the log in the cause. Pure.
    """
    log = LogText(lines)
    choice = choose(log, end, engine)
    if choice is None:
        return None
    index = choice.candidate.index
    return _cause(choice, file, lines[index] if index >= 0 else None, log)


def _cause(choice: Choice, file: str | None, line: Line | None, log: LogText) -> Cause:
    candidate, rule = choice.candidate, choice.candidate.rule
    text = log.texts[candidate.index] if line is not None else choice.words
    known = f"{text} at {candidate.where}" if rule.generic and candidate.where else text
    return Cause(
        code=rule.code,
        kind=rule.kind,
        title=rule.title,
        text=text,
        advice=_advice(candidate),
        fingerprint=fingerprint(known),
        file=file,
        line=line.number if line is not None else None,
        rank=_rank(log, candidate),
        sure=choice.sure,
        retry=rule.retry,
        around=_around(log, candidate.index),
    )


def _rank(log: LogText, candidate: Candidate) -> str | None:
    """Return the rank in the line's prefix, or in that of the traceback's first line (SGLang writes it there only)."""
    for index in (candidate.index, candidate.head):
        if index is not None and index >= 0 and log.read(index).rank:
            return log.read(index).rank
    return None


def _around(log: LogText, index: int) -> tuple[tuple[int, str], ...]:
    """Return the lines around `index`; before the end of the log where the cause has no line of its own."""
    middle = index if index >= 0 else len(log)
    shown = range(max(0, middle - AROUND), min(len(log), middle + AROUND + 1))
    return tuple((log.lines[i].number, log.texts[i]) for i in shown)


def _advice(candidate: Candidate) -> str:
    """Fill the rule's advice with what its pattern found, without the log's control characters."""
    groups = {name: _CONTROL.sub("?", value)[:_LONGEST_GROUP] for name, value in candidate.groups}
    if groups.get("number", "").isdigit():
        groups.setdefault("signal", signal_name(int(groups["number"])))
    advice = (candidate.when.advice if candidate.when else "") or candidate.rule.advice
    return _PLACE.sub(lambda match: groups.get(match[1], ""), advice)


class Stuck(msgspec.Struct, frozen=True, kw_only=True):
    """Where a life without an error stands that has not become ready."""

    phase: str
    line: int | None
    text: str
    kind: str


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What one life shows: its cause, other candidates (best first), where it is stuck."""

    cause: Cause | None
    candidates: tuple[Cause, ...] = ()
    stuck: Stuck | None = None


def examine(
    lines: Sequence[Line],
    end: End,
    table: EngineTable | None = None,
    file: str | None = None,
    _version: str | None = None,
    _rules: Sequence[Rule] = (),
) -> Findings:
    """Say what one life shows."""
    return Findings(cause=diagnose(lines, end, table.name if table else None, file))


def wanted(tables: Sequence[EngineTable], rules: Sequence[Rule] = ()) -> Wanted:
    """Return the literals whose lines `examine` needs."""
    texts = {needle.when.text for needle in NEEDLES} | {when.text for rule in rules for when in rule.when}
    texts |= {*READING.relays, *READING.harmless, *READING.ready, *READING.stopped, *ERROR_WORDS, HEAD}
    for table in tables:
        texts |= {*(sign.text for sign in table.signs), *table.banners, *table.ready_lines, *table.fatal_lines}
    usage = ("usage: ", "Usage: ")
    return Wanted(tuple(sorted({*texts, *("\n" + text for text in usage)})), {HEAD: 400, **dict.fromkeys(usage, 200)})
