"""Reads a whole log, of any size and of many lives, and says why the last of them ended."""

from collections.abc import Sequence

import msgspec

from vigil.diagnosis.blocks import Blocks
from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.find import Findings, examine
from vigil.diagnosis.lives import Lives
from vigil.diagnosis.patience import SlowRule
from vigil.diagnosis.rules import Rule, without
from vigil.diagnosis.seen import Told
from vigil.diagnosis.sieve import Kept, Sieve
from vigil.diagnosis.stuck import Stuck
from vigil.diagnosis.wanted import wanted
from vigil.engine_table import EngineTable, printed_by, version_in
from vigil.ready_lines import ready_lines

_VERSION_LINES, _VERSION_CHARS = 400, 400


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What a log tells. `attempts`: lives of the server in it; `alike`: how many of the last ones ended with the same cause.

    `ready`: the last life said that it served. `cause` and `candidates` are those of the life that explains the others;
    `stuck_in`: where a life without a cause stands that has not become ready. `slow_rules`: users' rules that took too
    long, and were left out from there on. `host`: what its host shows that bears on it.
    """

    file: str | None
    engine: str | None
    version: str | None
    attempts: int
    alike: int
    ready: bool
    cause: Cause | None
    candidates: tuple[Cause, ...]
    stuck_in: Stuck | None
    slow_rules: tuple[SlowRule, ...] = ()
    host: tuple[Told, ...] = ()


class _Life(msgspec.Struct, frozen=True):
    found: Findings
    ready: bool


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a log beside its bytes.

    `file`: its name in causes; `table`: its engine, else the log says it; `end`: how the last life ended, as its parent
    saw it; `lines_before`: lines of the file that earlier starts wrote and that are left out.
    """

    file: str | None = None
    table: EngineTable | None = None
    end: End | None = None
    lines_before: int = 0


class Postmortem:
    """Takes a log's bytes in any pieces. `tables`: the engines among which the log says its own."""

    def __init__(self, tables: Sequence[EngineTable], log: Log | None = None, rules: Sequence[Rule] = ()) -> None:
        self._tables = tables
        self._log = log or Log()
        self._table = self._log.table
        self._rules = rules
        self._slow: tuple[SlowRule, ...] = ()
        self._version: str | None = None
        self._closing = False
        self._lives = 0
        self._alike = 0
        self._cut: tuple[Cause, ...] = ()
        self._first: _Life | None = None
        self._last: tuple[_Life, ...] = ()
        self._blocks = Blocks()
        self._sieve = Sieve(wanted(tables, rules), Lives(tables), self._examine, self._log.lines_before)

    @property
    def size(self) -> int:
        """Return the bytes that came."""
        return self._blocks.size

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        for block in self._blocks.feed(data):
            self._sieve.take(block)

    def close(self) -> Story:
        """Say what the log tells; no bytes come any more."""
        for block in self._blocks.close():
            self._sieve.take(block)
        self._closing = True
        self._sieve.close()
        if not self._lives and self._log.end is not None and self._log.end.died:
            self._examine(())  # it died without a word: how it ended, and its host, may tell
        telling = self._telling()
        last = self._last[-1] if self._last else None
        return Story(
            file=self._log.file,
            engine=self._table.name if self._table is not None else None,
            version=self._version,
            attempts=max(int(self.size > 0), self._lives),
            alike=self._alike,
            ready=last.ready if last else False,
            cause=telling.cause if telling else None,
            candidates=telling.candidates if telling else (),
            stuck_in=telling.stuck if telling and telling.cause is None else None,
            slow_rules=self._slow,
            host=telling.told if telling else (),
        )

    def _examine(self, kept: Kept) -> None:
        self._recognise(kept)
        texts = ready_lines(self._table.name if self._table is not None else None)
        ready = any(text in line.text for line in kept for text in texts)
        end = msgspec.structs.replace((self._log.end if self._closing else None) or End(), ready=ready)
        found = examine(kept, end, self._table, self._log.file, self._version, self._rules)
        self._slow += found.slow
        self._rules = without(self._rules, found.slow)
        life = _Life(found, ready)
        same = self._last and _fingerprint(life) == _fingerprint(self._last[-1])
        self._alike = self._alike + 1 if same else int(found.cause is not None)
        self._lives += 1
        if found.repeated is not None and not ready:
            self._cut = (*self._cut, found.repeated)[-2:]
        elif not self._closing or ready or found.cause is not None:
            self._cut = ()
        self._first = self._first or life
        self._last = (*self._last, life)[-2:]

    def _recognise(self, kept: Kept) -> None:
        """Learn which engine printed this, and its version."""
        for line in kept[:_VERSION_LINES]:
            if self._table is None:
                self._table = printed_by(line.text, self._tables)
            if self._table is not None:
                self._version = version_in(line.text[:_VERSION_CHARS], self._table) or self._version

    def _telling(self) -> Findings | None:
        """Return what was found in the life that explains the others: the last one, with four exceptions.

        Several in a row that ended without a cause tell what none of them tells alone. A life that just began says nothing
        yet. One that finds its port taken may be kept out by what an earlier one left, and that one's cause is the
        real one. Where the first found a port taken, ranks that do not meet later met whoever holds it.
        """
        if not self._last or self._first is None:
            return None
        last = self._last[-1]
        if len(self._cut) > 1:
            return Findings(cause=self._cut[-1], candidates=(), stuck=None)
        if (
            last.found.cause is None
            and not last.ready
            and len(self._last) > 1
            and self._last[0].found.cause is not None
        ):
            last = self._last[0]
        first, cause = self._first.found, last.found.cause
        kinds = (first.cause.kind if first.cause else "", cause.kind if cause else "")
        if kinds == ("port_in_use", "dist_rendezvous_timeout") or (kinds[0] and kinds[0] != kinds[1] == "port_in_use"):
            return first
        return last.found


def _fingerprint(life: _Life) -> tuple[str, str] | None:
    cause = life.found.cause
    return (cause.code, cause.fingerprint) if cause is not None else None
