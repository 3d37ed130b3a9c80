"""Chooses, among the candidates, the first failure that explains the others, and weighs how sure that is.

The first in time goes first, unless a line near it knows more: "NCCL error: unhandled system error" is followed by the
system's error, "Ninja build failed" by the compiler's. What processes print because another one is gone goes last,
whenever it was printed.

Sureness, argued: a rule's line at the end of a traceback is the process's own last word (0.95); a rule's line alone
may be somebody else's mention (0.9); what may have another cause near it, which was not found, says what failed and
not why (0.75); after a request to stop, everything may be the mess of going down (0.6). An exception that no rule
knows did end something, but perhaps not the server (0.6, 0.5 without its traceback); what another process's death
leaves behind is no cause (0.4); an error line that no rule knows is a hint (0.35). The kernel's word on an OOM kill is
nearly proof (0.97); a bare signal is a fact, but says nothing about why (0.7).
"""

import signal as signals

from vigil.diagnosis.candidates import Candidate, Evidence, Marks, find_cut_traceback, find_error_line
from vigil.diagnosis.cause import End
from vigil.diagnosis.reader import exception_in
from vigil.diagnosis.rules import how_to_read, known_rules
from vigil.diagnosis.stages import SERVING
from vigil.diagnosis.text import LogText
from vigil.diagnosis.upward import look_upward

OOM_SURE = 0.97
SIGNAL_SURE = 0.7
ERROR_LINE_SURE = 0.35
MOST_OTHERS = 2
_SHELL_BASE = 128
_NEAR = 200
"""Lines of the log within which a line that knows more is about the same failure: one traceback of each of 8 ranks."""
_WEAK, _GENERIC, _AFTERMATH = 1, 2, 3


class Choice:
    """What was chosen: a candidate, or a rule by the way the process ended (`words` then stand for the line)."""

    def __init__(self, candidate: Candidate, sure: float, words: str = "") -> None:
        self.candidate = candidate
        self.sure = sure
        self.words = words


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; numbers that this system does not know keep their number."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_signal(end: End) -> int | None:
    """Return the signal that ended the process.

    Also where a shell or a container reported it as 128 + n, or Python as -n.
    """
    if end.signal is not None:
        return end.signal
    if end.code is None or end.code == 0:
        return None
    number = -end.code if end.code < 0 else end.code - _SHELL_BASE
    return number if 0 < number < signals.NSIG else None


def choose(log: LogText, end: End, evidence: Evidence) -> Choice | None:
    """Return the cause's line, or the end itself where no line explains it, or None without evidence."""
    if end.oom_killed:
        return _oom(evidence.candidates)
    chosen = _first(log, evidence)
    if chosen is not None:
        return Choice(look_upward(log, chosen), sureness(chosen, evidence.marks))
    return _from_end(end) or _error_line(log, end, evidence)


def outlived(log: LogText, evidence: Evidence, one: Candidate) -> bool:
    """Whether the start went on after a line that is no traceback and no error of its writer's, and nobody tells of an end."""
    line = log.read(one.index)
    if one.head is not None or one.level < 0 or line.level == "E" or exception_in(line.body):
        return False
    if evidence.stages.at(len(log)) == SERVING:
        return False  # what a server outlives is told by its work
    ended = log.first_after((*how_to_read().relays, *how_to_read().gone), one.index)
    return ended is None and _moved_on(log, evidence, one, len(log))


def others(evidence: Evidence, chosen: Candidate) -> tuple[Candidate, ...]:
    """Return what else could be the cause: first failures of other kinds than `chosen`, best first."""
    seen = {(chosen.rule.code, chosen.kind)}
    lines = {chosen.index, chosen.line}
    found: list[Candidate] = []
    for one in sorted(_counting(evidence), key=lambda c: (c.level, c.index)):
        kind = (one.rule.code, one.kind)
        if kind in seen or one.index in lines or one.level >= _AFTERMATH:
            continue
        seen.add(kind)
        found.append(one)
    return tuple(found[:MOST_OTHERS])


def first_sign(log: LogText, evidence: Evidence, chosen: Candidate) -> Candidate:
    """Return the first line that shows the failure which `chosen` explains: when it happened, rather than why."""
    near = (c for c in evidence.candidates if c.index <= chosen.index and log.apart(c.index, chosen.index) <= _NEAR)
    return next((c for c in near if c.level < _AFTERMATH), chosen)


def _counting(evidence: Evidence) -> list[Candidate]:
    """Leave out what counts no more: asked to stop, processes end by signals and with odd errors."""
    stopped = evidence.marks.stopped
    return [c for c in evidence.candidates if c.index < stopped or (c.level < _GENERIC and not c.rule.from_end)]


def _first(log: LogText, evidence: Evidence) -> Candidate | None:
    best: Candidate | None = None
    for one in _counting(evidence):
        if (
            best is None
            or (one.level < best.level and _explains(log, evidence, one, best))
            or _outlived(log, evidence, best, one)
        ):
            best = one
    return best


def _explains(log: LogText, evidence: Evidence, later: Candidate, earlier: Candidate) -> bool:
    """Whether `later`, which knows more, is about the same failure as `earlier`, or that one did no harm."""
    if earlier.level == _AFTERMATH:
        return True
    near = log.apart(earlier.index, later.index) <= _NEAR
    if earlier.level == _GENERIC and later.rule.from_end:
        return False  # a parent's word on how its child ended
    if earlier.level == _GENERIC and later.level == _WEAK:
        # The other ranks' watchdogs bark because one died of what no rule knows.
        return near and log.read(earlier.index).process == log.read(later.index).process
    return near or (earlier.level == _GENERIC and _moved_on(log, evidence, earlier, later.index))


def _outlived(log: LogText, evidence: Evidence, earlier: Candidate, later: Candidate) -> bool:
    """Whether the start went on after `earlier`, as after a plugin that cannot be loaded, until `later` ended it.

    It did not where somebody said that this was the end before it came to another stage.
    """
    if later.level > min(earlier.level, _GENERIC) or later.rule.code == earlier.rule.code or later.rule.from_end:
        return False
    ended = log.first_after((*how_to_read().relays, *how_to_read().gone), earlier.index)
    return _moved_on(log, evidence, earlier, later.index if ended is None else min(ended, later.index))


def _moved_on(log: LogText, evidence: Evidence, earlier: Candidate, before: int) -> bool:
    """Whether the process of `earlier` came to another stage before a line; what has no rank speaks for all."""
    places = [index for index in (earlier.index, earlier.head) if index is not None]
    rank = next((found for index in places if (found := log.read(index).rank)), "")
    return any(not rank or log.read(i).rank == rank for i in evidence.stages.turns(earlier.index, before))


def sureness(chosen: Candidate, marks: Marks) -> float:
    """Return how sure it is that a candidate is the cause; see the module's words."""
    if chosen.index > marks.stopped:
        return 0.6
    if chosen.level == _AFTERMATH:
        return 0.4
    if chosen.level == _GENERIC:
        return 0.6 if chosen.head is not None else 0.5
    if chosen.level == _WEAK:
        return 0.75
    return 0.95 if chosen.head is not None else 0.9


def _oom(alive: tuple[Candidate, ...]) -> Choice:
    """Take the kernel's word: other processes' errors (NCCL, TCP stores) are what a killed one leaves behind."""
    told = next((c for c in alive if c.rule.code in {"MEM003", "SIG001"}), None)
    rule = known_rules()["MEM003"]
    return Choice(
        Candidate(index=told.index if told else -1, rule=rule),
        OOM_SURE,
        "" if told else "killed by the kernel: out of memory",
    )


def _from_end(end: End) -> Choice | None:
    number = end_signal(end)
    if number is None:
        return None
    name = signal_name(number)
    candidate = Candidate(index=-1, rule=known_rules()["SIG001"], groups=(("signal", name), ("number", str(number))))
    return Choice(candidate, SIGNAL_SURE, f"killed by {name}")


def _error_line(log: LogText, end: End, evidence: Evidence) -> Choice | None:
    """Return an unknown error line where the end was bad; without a code, only where the server never served."""
    if end.code == 0 or (end.code is None and (end.ready or evidence.marks.ready >= 0)):
        return None
    found = find_error_line(log, evidence) or find_cut_traceback(log, evidence)
    return Choice(found, ERROR_LINE_SURE) if found else None
