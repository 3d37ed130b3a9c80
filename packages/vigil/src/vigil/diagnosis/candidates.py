"""Gathers the lines of an attempt that could be why it ended, each with the rule that knows it."""

import re

import msgspec

from vigil.diagnosis.reader import Chain, read_chains, usage_lines
from vigil.diagnosis.rules import NEEDLES, READING, RULES, Needle, Rule, When
from vigil.diagnosis.text import LogText

_QUIET = frozenset("WID")
_QUOTED = "    "
"""Lines indented so far are source that a traceback quotes, or help texts."""
ERROR_WORDS = ("ERROR", "Error", "error", "CRITICAL", " E ", "[E")
_ERROR_FIRST = re.compile(r"(?:[\w.:/-]+ ){0,3}(?:fatal )?error\b", re.IGNORECASE)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could be the cause.

    `head` is the first line of the traceback that it ends, `where` the innermost frame of that.
    """

    index: int
    rule: Rule
    when: When | None = None
    groups: tuple[tuple[str, str], ...] = ()
    head: int | None = None
    where: str = ""


class Marks(msgspec.Struct, frozen=True):
    """Where the attempt said that it served (last), and that it was asked to stop (first); lines from 0."""

    ready: int
    stopped: int


class Evidence(msgspec.Struct, frozen=True):
    """All that one attempt's lines show.

    `muted`: lines that cannot be a cause (relays, frames, usage texts).
    """

    marks: Marks
    candidates: tuple[Candidate, ...]
    muted: frozenset[int]


def read_marks(log: LogText) -> Marks:
    """Find the turns of an attempt's life.

    Without them, `ready` is before the first line and `stopped` behind the last.
    """
    ready = max(log.find_any(READING.ready), default=-1)
    return Marks(ready, min((i for i in log.find_any(READING.stopped) if i > ready), default=len(log)))


def gather(log: LogText, engine: str | None) -> Evidence:
    """Return what the attempt shows after it last said that it served; one candidate for each chain of exceptions."""
    marks = read_marks(log)
    chains = read_chains(log, marks.ready)
    muted = log.find_any(READING.relays) | log.find_any(READING.harmless) | usage_lines(log)
    muted |= {index for chain in chains for index in chain.inside}
    by_line: dict[int, Candidate] = {}
    for needle in NEEDLES:
        if needle.suits(engine):
            _search(log, needle, muted, by_line)
    for chain in chains:
        _settle(log, chain, muted, by_line)
    found = tuple(by_line[index] for index in sorted(by_line) if index > marks.ready)
    return Evidence(marks, found, frozenset(muted))


def find_error_line(log: LogText, evidence: Evidence) -> Candidate | None:
    """Return the first line that its writer called an error and that no rule knows: the last resort."""
    marks = evidence.marks
    for index in sorted(log.find_any(ERROR_WORDS) - evidence.muted):
        line = log.read(index)
        called_error = line.level == "E" or (not line.level and _ERROR_FIRST.match(line.body))
        if called_error and marks.ready < index < marks.stopped:
            return Candidate(index=index, rule=RULES["ERR000"])
    return None


def _search(log: LogText, needle: Needle, muted: set[int], by_line: dict[int, Candidate]) -> None:
    """Add what one needle finds; a rule that knows the failure replaces a generic one on the same line."""
    for index in log.find(needle.when.text):
        before = by_line.get(index)
        if index in muted or (before is not None and (needle.rule.generic or not before.rule.generic)):
            continue
        line = log.read(index)
        if line.level in _QUIET or line.body.startswith(_QUOTED):
            continue
        match = needle.pattern.search(line.body) if needle.pattern else None
        if needle.pattern and match is None:
            continue
        groups = tuple((k, v or "") for k, v in match.groupdict().items()) if match else ()
        by_line[index] = Candidate(index=index, rule=needle.rule, when=needle.when, groups=groups)


def _settle(log: LogText, chain: Chain, muted: set[int], by_line: dict[int, Candidate]) -> None:
    """Leave one candidate of a chain: the first exception that a rule knows, else the first that says something."""
    known = {raised.index: by_line.pop(raised.index, None) for raised in chain.raised}
    if _handled(log, chain):
        return
    loud = [raised for raised in chain.raised if raised.index not in muted]
    if not loud:
        return
    for raised in loud:
        found = known[raised.index]
        if found is not None and not found.rule.generic:
            by_line[raised.index] = msgspec.structs.replace(found, head=chain.head, where=raised.where)
            return
    # An exception without words that led to another one (StopIteration, KeyError) is how Python looks things up.
    raised = next((one for one in loud if one.message), loud[0])
    by_line[raised.index] = Candidate(index=raised.index, rule=RULES["EXC000"], head=chain.head, where=raised.where)


def _handled(log: LogText, chain: Chain) -> bool:
    """Whether the traceback was only told: at a quiet level, or for one request."""
    near = log.texts[max(0, chain.head - 1) : chain.head + 1]
    return log.read(chain.head).level in _QUIET or any(h in text for h in READING.harmless_heads for text in near)
