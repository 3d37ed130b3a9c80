"""The verdicts, their exit codes, and the object that `--json` prints."""

from enum import StrEnum

import msgspec

from vigil.changes.change import Change
from vigil.diagnosis.cause import Cause
from vigil.engine_table import Phase


class Word(StrEnum):
    """What the facts mean now."""

    READY = "ready"
    FINISHED = "finished"
    STARTING = "starting"
    REFUSED = "refused"
    CRASHED = "crashed"
    CRASH_LOOPING = "crash_looping"
    STALLED = "stalled"
    TIMED_OUT = "timed_out"
    UNHEALTHY = "unhealthy"
    BUSY = "busy"
    DEGRADED = "degraded"
    UNREACHABLE = "unreachable"
    STOPPED = "stopped"


EXIT_CODES: dict[Word, int] = {
    Word.READY: 0,
    Word.FINISHED: 0,
    Word.BUSY: 0,
    Word.REFUSED: 3,
    Word.CRASHED: 4,
    Word.CRASH_LOOPING: 5,
    Word.STALLED: 6,
    Word.TIMED_OUT: 7,
    Word.UNHEALTHY: 8,
    Word.DEGRADED: 9,
    Word.UNREACHABLE: 10,
    Word.STOPPED: 11,
    Word.STARTING: 12,
}

SERVING = frozenset({Word.READY, Word.BUSY, Word.DEGRADED})
OVER = frozenset({Word.FINISHED, Word.REFUSED, Word.CRASHED, Word.STOPPED})


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence that a person can check. `fact`: its number in the trace, from 1 (None: it follows from several)."""

    text: str
    fact: int | None = None


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one `--expect`. `met` None: it cannot be told, which counts as not met. `found`: what runs."""

    expectation: str
    met: bool | None
    found: str


class PhaseSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a start-up; seconds since the watching began. `to_s` is None while it lasts."""

    name: Phase
    from_s: float
    to_s: float | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One life of the server's main process, as it is shown. `cause` is a code."""

    n: int
    pid: int | None = None
    started_s: float = 0.0
    ended_s: float | None = None
    ready_s: float | None = None
    exit: int | None = None
    signal: int | None = None
    cause: str | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One honest answer, with its evidence. `since_s`: seconds from the start of the watching to the verdict.

    `tail`: the last few lines of the log, by number, where no cause was found to show in their place.
    `changes`: what differs from the last start of this plan that became ready, `changes_since_s` before this one; None where
    there is no such start, or this verdict is no failure.
    """

    schema: int = 1
    name: str = ""
    word: Word = msgspec.field(name="verdict")
    exit_code: int
    since_s: float
    phase: Phase | None = None
    ready_level: str | None = None
    owner: str | None = None
    reason: str = ""
    cause: Cause | None = None
    evidence: tuple[Evidence, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    progress: tuple[int, int] | None = None
    expected_s: float | None = None
    last_line: str = ""
    tail: tuple[tuple[int, str], ...] = ()
    log: str | None = None
    host: str = "here"
    engine: str = "generic"
    url: str | None = None
    model: str | None = None
    changes: tuple[Change, ...] = ()
    changes_since_s: float | None = None
    expectations: tuple[Expected, ...] = ()
    warnings: tuple[str, ...] = ()
