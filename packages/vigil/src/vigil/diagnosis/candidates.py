"""Gathers the lines of an attempt that could be why it ended, each with the rule that knows it."""

import re

import msgspec

from vigil.diagnosis.prefix import read_line, without_carrier
from vigil.diagnosis.reader import (
    HEAD,
    Chain,
    both_ends,
    exception_in,
    frames_above,
    quoted_lines,
    read_chains,
    usage_lines,
)
from vigil.diagnosis.rules import Needle, Rule, RuleSet, When, how_to_read, known_rules
from vigil.diagnosis.stages import SERVING, Stages
from vigil.diagnosis.text import LogText
from vigil.ready_lines import ready_lines

_QUIET = frozenset("WID")
_QUOTED = "    "
"""Lines indented so far are source that a traceback quotes, or help texts."""
ERROR_WORDS = ("ERROR", "Error", "error", "CRITICAL", " E ", "[E")
_ERROR_FIRST = re.compile(r"(?:[\w.:/-]+ ){0,3}(?:fatal )?error\b", re.IGNORECASE)
_WHAT, _ABORTED = "what():", "Fatal Python error: Aborted"
_MOST_HITS = 600
"""Lines that one text is looked at in: a server may print it for each request."""
_MOST_ABOVE = 20
_MOST_BELOW = 60
_JUST_BEFORE = 8
SOON = 20
"""Lines after a failure in which its writer may take it back ("retrying without ...")."""
_GENERIC = 2
_IGNORED = "Ignore import error when loading"
_LONGEST_WORD = 8
"""Lines of a message that are read on: SGLang quotes the whole text of an import that failed."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could be the cause.

    `level` is how much its rule knows (see `Needle`). `shown` is the line to point at, where that is not the line
    itself. `head` is the first line of the traceback that it ends, `where` the innermost frame of that. `kind` replaces
    the rule's where given.
    """

    index: int
    rule: Rule
    when: When | None = None
    groups: tuple[tuple[str, str], ...] = ()
    head: int | None = None
    where: str = ""
    level: int = _GENERIC
    shown: int | None = None
    kind: str = ""

    @property
    def line(self) -> int:
        """The index of the line to point at."""
        return self.index if self.shown is None else self.shown


class Marks(msgspec.Struct, frozen=True):
    """Where the attempt said that it served (last), and that it was asked to stop (first); lines from 0."""

    ready: int
    stopped: int


class Evidence(msgspec.Struct, frozen=True):
    """All that one attempt's lines show.

    `lasting`: what is wrong with a server that came up all the same. `repeated`: what counts only where the start
    before looked like it. `muted`: lines that cannot be a cause (relays, frames, usage texts).
    `spare`: tracebacks that a request or a task was told to have run into, for a log that shows nothing else.
    """

    marks: Marks
    candidates: tuple[Candidate, ...]
    lasting: tuple[Candidate, ...]
    repeated: tuple[Candidate, ...]
    muted: frozenset[int]
    stages: Stages
    spare: tuple[Candidate, ...] = ()


class _Gathering:
    """The candidates of one attempt while they are collected; at most one for each line."""

    def __init__(
        self, log: LogText, ready: int, muted: set[int], relays: set[int], spans: dict[int, tuple[int, int]]
    ) -> None:
        self.log = log
        self.ready = ready
        self.muted = muted
        self.relays = relays
        self.spans = spans
        self.stages = Stages(log)
        self.by_line: dict[int, Candidate] = {}
        self.spare: list[Candidate] = []
        self.frames: dict[int, str] = {}
        self.stage_of: dict[int, str] = {}

    def search(self, needle: Needle) -> None:
        """Add what one needle finds; needles come in the order in which they may claim a line."""
        for index in both_ends(self.log.find(needle.when.text), _MOST_HITS):
            if index in self.by_line or index in self.muted or (index in self.relays and not needle.when.relayed):
                continue
            line = self.log.read(index)
            if (line.level in _QUIET and not needle.when.quiet) or line.body.startswith(_QUOTED):
                continue
            match = needle.pattern.search(line.body) if needle.pattern else None
            if (needle.pattern and match is None) or not self._holds(needle, index):
                continue
            groups = tuple((k, v or "") for k, v in match.groupdict().items()) if match else ()
            shown = self.log.last_before(needle.when.back, index) if needle.when.back else None
            self.by_line[index] = Candidate(
                index=index,
                rule=needle.rule,
                when=needle.when,
                groups=groups,
                level=needle.level,
                shown=shown,
                kind=needle.when.kind,
            )

    def _holds(self, needle: Needle, index: int) -> bool:
        when, log = needle.when, self.log
        if when.stage and self._stage(index) not in when.stage:
            return False
        if when.after and not self._above(needle, index):
            return False
        if when.then:
            told = log.first_after(when.then, index)
            if told is None or log.apart(index, told) > SOON:
                return False
        if when.unless:
            denial = log.first_after(when.unless, index)
            if denial is not None and log.apart(index, denial) <= SOON:
                return False
        return needle.frame is None or needle.frame.search(self._frames(index)) is not None

    def _above(self, needle: Needle, index: int) -> bool:
        last = self.log.last_before(needle.when.after, index)
        if needle.above is None or last is None:
            return last is not None
        rows = sorted(i for i in self.log.find_any(needle.when.after) if i < index)
        return any(needle.above.search(self.log.lines[i].text) for i in both_ends(rows, _MOST_ABOVE))

    def in_its_stage(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the kind that it has in the stage in which it came."""
        return _in_stage(candidate, self._stage(candidate.index))

    def _stage(self, index: int) -> str:
        """Return the stage in which a line came, found once for all needles."""
        if index not in self.stage_of:
            self.stage_of[index] = _stage_at(self.stages, self.ready, index, self._frames(index))
        return self.stage_of[index]

    def _frames(self, index: int) -> str:
        """Return the frames of the tracebacks that a line ends or is chained to, read once for all needles."""
        if index not in self.frames:
            head, last = self.spans.get(index) or self._span_below(index)
            self.frames[index] = "\n".join(frames_above(self.log, last, head))
        return self.frames[index]

    def _span_below(self, index: int) -> tuple[int | None, int]:
        """Return the span of the traceback that a line announces: loggers say an exception's words before its traceback."""
        line = self.log.read(index)
        head, last = min((span for span in self.spans.values() if span[0] >= index), default=(None, index))
        if head is None or exception_in(line.body) or self.log.apart(index, head) > _JUST_BEFORE:
            return None, index
        below = self.log.read(head)
        return (head, last) if below.process == line.process or not below.prefixed else (None, index)

    def _counts(self, index: int, found: Candidate | None) -> bool:
        """Whether a line of a chain can be the cause: a parent's word on its child only by a rule that reads it."""
        relayed = found is not None and found.when is not None and found.when.relayed
        return index not in self.muted and (relayed or index not in self.relays)

    def settle(self, chain: Chain) -> None:
        """Leave one candidate of a chain: the first exception that a rule knows, else the first that says something."""
        known = {raised.index: self.by_line.pop(raised.index, None) for raised in chain.raised}
        told = self.by_line.get(chain.head)
        if told is not None and any(
            found is not None and (found.rule is told.rule or found.rule.aftermath) for found in known.values()
        ):
            del self.by_line[chain.head]  # the logger's words repeat the exception's, which comes at the end
        chosen = self._of_chain(chain, known)
        if chosen is not None and not _handled(self.log, chain):
            self.by_line[chosen.index] = chosen
        elif chosen is not None and self.log.read(chain.head).level not in _QUIET:
            self.spare.append(chosen)

    def _of_chain(self, chain: Chain, known: dict[int, Candidate | None]) -> Candidate | None:
        loud = [one for one in chain.raised if self._counts(one.index, known[one.index])]
        for level in (0, 1):
            for raised in loud:
                found = known[raised.index]
                if found is not None and found.level <= level:
                    return msgspec.structs.replace(found, head=chain.head, where=raised.where)
        if not loud:
            return None
        # An exception without words that led to another one (StopIteration, KeyError) is how Python looks things up; so is
        # one whose words are an object's address.
        raised = next((one for one in loud if one.message and not one.message.startswith("<")), loud[0])
        found = known[raised.index] or Candidate(index=raised.index, rule=known_rules()["EXC000"])
        return msgspec.structs.replace(found, head=chain.head, where=raised.where)


def read_marks(log: LogText, engine: str | None) -> Marks:
    """Find the turns of an attempt's life.

    Without them, `ready` is before the first line and `stopped` behind the last.
    """
    ready = max(log.find_any(ready_lines(engine)), default=-1)
    return Marks(ready, min((i for i in log.find_any(how_to_read().stopped) if i > ready), default=len(log)))


def gather(log: LogText, engine: str | None, rules: RuleSet) -> Evidence:
    """Return what the attempt shows after it last said that it served; one candidate for each chain of exceptions.

    Raises `TooSlowError` where a user's rule takes too long.
    """
    rules.begin()
    marks = read_marks(log, engine)
    chains = read_chains(log, marks.ready)
    relays = log.find_any(how_to_read().relays)
    muted = log.find_any(how_to_read().harmless) | usage_lines(log) | {i for chain in chains for i in chain.inside}
    muted |= _told_aborts(log) | quoted_lines(log) | _ignored(log)
    first = {chain.head for chain in chains}
    spans = {raised.index: (chain.head, chain.raised[-1].index) for chain in chains for raised in chain.raised}
    gathering = _Gathering(log, marks.ready, muted - first, relays, spans)
    for needle in rules.needles:
        if needle.suits(engine):
            gathering.search(needle)
    for chain in chains:
        gathering.settle(chain)
    found = [gathering.by_line[index] for index in sorted(gathering.by_line)]
    repeated = tuple(one for one in found if one.when is not None and one.when.repeated)
    candidates = tuple(gathering.in_its_stage(one) for one in found if one.index > marks.ready and one not in repeated)
    lasting = tuple(one for one in found if one.when is not None and one.when.lasting)
    spare = tuple(gathering.in_its_stage(one) for one in gathering.spare if one.index > marks.ready)
    told = log.find_any(how_to_read().harmless_heads)
    return Evidence(marks, candidates, lasting, repeated, frozenset(muted | relays | told), gathering.stages, spare)


def _told_aborts(log: LogText) -> set[int]:
    """Return Python's word on an abort whose own words stand above it: that C++ ended here for what they say."""
    told = ((index, log.last_before((_WHAT,), index)) for index in log.find(_ABORTED))
    return {index for index, what in told if what is not None and log.apart(what, index) <= SOON}


def find_error_line(log: LogText, evidence: Evidence) -> Candidate | None:
    """Return the first line that its writer called an error and that no rule knows: the last resort."""
    marks = evidence.marks
    for index in sorted(log.find_any(ERROR_WORDS) - evidence.muted):
        line = log.read(index)
        if line.body[:1] in {"", " "} or HEAD in line.body:
            continue  # what a traceback quotes, where its end was not kept
        called_error = line.level == "E" or (not line.level and _ERROR_FIRST.match(line.body))
        if called_error and marks.ready < index < marks.stopped:
            return _in_stage(
                Candidate(index=index, rule=known_rules()["ERR000"]), _stage_at(evidence.stages, marks.ready, index)
            )
    return None


def find_cut_traceback(log: LogText, evidence: Evidence) -> Candidate | None:
    """Return the first line of a traceback whose end is not in the log, and that nothing shows to be handled."""
    marks, stages = evidence.marks, evidence.stages
    for index in log.find(HEAD):
        if marks.ready < index < marks.stopped and index not in evidence.muted and not _only_told(log, index):
            below = "\n".join(log.read(i).body for i in range(index, min(index + _MOST_BELOW, len(log))))
            return _in_stage(
                Candidate(index=index, rule=known_rules()["EXC000"]), _stage_at(stages, marks.ready, index, below)
            )
    return None


def _ignored(log: LogText) -> set[int]:
    """Return what follows SGLang's words on an import that it does without: the rest of their text."""
    found: set[int] = set()
    for first in log.find(_IGNORED):
        for index in range(first + 1, min(first + _LONGEST_WORD, len(log))):
            line = read_line(without_carrier(log.texts[index]))
            if line.prefixed or not line.body.strip() or HEAD in line.body or log.apart(first, index) != index - first:
                break
            found.add(index)
    return found


def _stage_at(stages: Stages, ready: int, index: int, frames: str = "") -> str:
    """Return the stage of a line: behind an engine's own word that it serves it serves."""
    return SERVING if 0 <= ready < index else stages.at(index, frames)


def _in_stage(candidate: Candidate, stage: str) -> Candidate:
    serving = candidate.rule.kind_serving
    return msgspec.structs.replace(candidate, kind=serving) if serving and stage == SERVING else candidate


def _handled(log: LogText, chain: Chain) -> bool:
    """Whether the traceback was only told: at a quiet level, or for one request, as its writer said just before."""
    if log.read(chain.head).level in _QUIET:
        return True
    if any(text in log.texts[raised.index] for raised in chain.raised[1:] for text in how_to_read().gone):
        return False  # one request told of it, and the engine ended
    return _only_told(log, chain.head)


def _only_told(log: LogText, index: int) -> bool:
    head = log.read(index)
    told = log.last_before(how_to_read().harmless_heads, index + 1)
    near = told is not None and log.apart(told, index) <= _JUST_BEFORE and log.read(told).process == head.process
    return near or head.level in _QUIET
