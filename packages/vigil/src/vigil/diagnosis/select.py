"""Chooses, among the candidates, the first failure that explains the others, and weighs how sure that is.

Sureness, argued: a rule's line at the end of a traceback is the process's own last word (0.95); a rule's line alone
may be somebody else's mention (0.9); after a request to stop, everything may be the mess of going down (0.6). An
exception that no rule knows did end something, but perhaps not the server (0.6, 0.5 without its traceback); an error
line that no rule knows is a hint (0.35). The kernel's word on an OOM kill is nearly proof (0.97); a bare signal is a
fact, but says nothing about why (0.7).
"""

import signal as signals

from vigil.diagnosis.candidates import Candidate, Evidence, Marks, find_error_line, gather
from vigil.diagnosis.cause import End
from vigil.diagnosis.rules import RULES
from vigil.diagnosis.text import LogText

OOM_SURE = 0.97
SIGNAL_SURE = 0.7
ERROR_LINE_SURE = 0.35
_SHELL_BASE = 128
_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT"})


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


def choose(log: LogText, end: End, engine: str | None) -> Choice | None:
    """Return the cause's line, or the end itself where no line explains it, or None without evidence."""
    evidence = gather(log, engine)
    if end.oom_killed:
        return _oom(evidence.candidates)
    chosen = _first(evidence)
    if chosen is not None:
        return Choice(chosen, _sure(chosen, evidence.marks))
    return _from_end(end) or _error_line(log, end, evidence)


def _first(evidence: Evidence) -> Candidate | None:
    """Return the first failure in time.

    After a request to stop, processes end by signals and with odd errors, and neither counts.
    """
    stopped = evidence.marks.stopped
    return next((c for c in evidence.candidates if c.index < stopped or not (c.rule.generic or c.rule.from_end)), None)


def _sure(chosen: Candidate, marks: Marks) -> float:
    if chosen.index > marks.stopped:
        return 0.6
    if chosen.rule.generic:
        return 0.6 if chosen.head is not None else 0.5
    return 0.95 if chosen.head is not None else 0.9


def _oom(alive: tuple[Candidate, ...]) -> Choice:
    """Take the kernel's word: other processes' errors (NCCL, TCP stores) are what a killed one leaves behind."""
    told = next((c for c in alive if c.rule.code in {"MEM003", "SIG001"}), None)
    rule = RULES["MEM003"]
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
    candidate = Candidate(index=-1, rule=RULES["SIG001"], groups=(("signal", name), ("number", str(number))))
    return Choice(candidate, SIGNAL_SURE, f"killed by {name}")


def _error_line(log: LogText, end: End, evidence: Evidence) -> Choice | None:
    """Return an unknown error line where the end was bad; without a code, only where the server never served."""
    if end.code == 0 or (end.code is None and end.ready):
        return None
    found = find_error_line(log, evidence)
    return Choice(found, ERROR_LINE_SURE) if found else None
