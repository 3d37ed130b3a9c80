"""Facts about the log: phases, banners of a new life, and what is kept for the diagnosis."""

import re

from msgspec.structs import replace

from vigil.engine_table import EngineTable, Phase
from vigil.facts import Line, LogGrew, LogReset, LogUnreadable
from vigil.reading import Reading, read_sign
from vigil.verdict import attempts, processes
from vigil.verdict.state import Life, Startup, State
from vigil.verdict.words import PhaseSpan

# Access lines answer our own probes: the log growing by them says nothing about the start-up.
_ECHOES = ('"GET /', '"POST /', '"HEAD /')
OPENING_LINES = 2  # so many lines, alike but for their numbers, open a life of a program whose banners we do not know
_DIGITS = re.compile(r"\d+")


def on_log_grew(state: State, fact: LogGrew, table: EngineTable) -> State:
    """Take new lines in: keep them, read the engine's signs in them, notice a new life."""
    log = state.log
    changed = replace(
        log,
        size=fact.size,
        inode=fact.inode or log.inode,
        seen=True,
        error="",
        missing=False,
        last=fact.lines[-1].text if fact.lines else log.last,
        line=fact.lines[-1].number if fact.lines else log.line,
        grew_s=log.grew_s if fact.history else state.now_s,
    )
    state = replace(state, log=changed)
    begin = 0
    for index, line in enumerate(fact.lines):
        reading = read_sign(table, line.text)
        if reading is None and table.banners:
            continue
        if _opens_a_life(state, fact.lines, index, reading, table):
            state = _kept(state, fact.lines[begin:index], fact)
            begin = index
            state = _new_life(state, table, history=fact.history)
        state = _read(state, line, reading, table, history=fact.history)
    state = _kept(state, fact.lines[begin:], fact)
    if fact.history or not _tells_something(state, fact):
        return state
    return processes.moved(state, "the log grew")


def _tells_something(state: State, fact: LogGrew) -> bool:
    if not fact.lines:
        return fact.skipped == 0
    if state.serving.port is None:
        return True
    return any(not any(echo in line.text for echo in _ECHOES) for line in fact.lines)


def _kept(state: State, lines: tuple[Line, ...], fact: LogGrew) -> State:
    """Keep lines for the diagnosis; history only while it can be this process's own output."""
    if not lines:
        return state
    log = state.log
    if fact.history:
        log = replace(log, chunks=attempts.keep(log.chunks, lines))
    else:
        life = state.process.life
        opening = log.opening
        if len(opening) < OPENING_LINES and life is not None:
            opening = (*opening, *(_shape(line.text) for line in lines))[:OPENING_LINES]
        log = replace(log, chunks=attempts.keep(log.chunks, lines), opening=opening)
    return replace(state, log=log)


def _shape(text: str) -> str:
    return _DIGITS.sub("0", text)


def _opens_a_life(
    state: State, lines: tuple[Line, ...], index: int, reading: Reading | None, table: EngineTable
) -> bool:
    """Say whether this line is the first of another life (law 5: identity, not sameness of text)."""
    life = state.process.life
    if life is not None and life.sure:
        return False
    if table.banners:
        return reading is not None and reading.banner
    if life is None:
        return not state.process.seen
    opening = state.log.opening
    if not life.by_log or len(opening) < OPENING_LINES or opening[0] == opening[1]:
        return False
    following = lines[index + 1 : index + 2]
    return _shape(lines[index].text) == opening[0] and all(_shape(line.text) == opening[1] for line in following)


def _new_life(state: State, table: EngineTable, *, history: bool) -> State:
    """Begin an attempt that only the log shows, or mark the present one as opened."""
    life = state.process.life
    if history:
        return replace(state, log=replace(state.log, chunks=()), startup=_startup_again(state, table))
    if life is not None and not life.opened:
        return replace(state, process=replace(state.process, life=replace(life, opened=True)))
    if life is None and state.process.seen:
        return state
    state = attempts.end(state, table)
    new = Life(n=attempts.next_number(state), started_s=state.now_s, opened=True, by_log=True)
    if life is not None:
        new = replace(new, pid=life.pid, start_ticks=life.start_ticks)
    return attempts.begin(state, new, attempts.first_phase(table))


def _startup_again(state: State, table: EngineTable) -> Startup:
    first = attempts.first_phase(table)
    spans = (PhaseSpan(name=first, from_s=state.now_s),)
    return replace(state.startup, phase=first, since_s=state.now_s, spans=spans, progress=None)


def _read(state: State, line: Line, reading: Reading | None, table: EngineTable, *, history: bool) -> State:
    if reading is None:
        return state
    if reading.phase is not None:
        state = enter(state, phase_of(state, reading, table))
    if reading.done is not None and reading.total:
        state = replace(state, startup=replace(state.startup, progress=(reading.done, reading.total)))
    if history:
        return state
    log = state.log
    if reading.ready and not log.ready_fact:
        state = replace(state, log=replace(log, ready_fact=state.n))
    if reading.fatal and log.fatal_s is None:
        state = replace(state, log=replace(state.log, fatal_s=state.now_s))
    if reading.alive:
        state = replace(state, serving=replace(state.serving, alive_s=state.now_s))
    return state


def phase_of(state: State, reading: Reading, table: EngineTable) -> Phase:
    """Return the phase that a reading means here: a second load of weights is the draft's."""
    assert reading.phase is not None  # noqa: S101 - the caller looked
    again = table.repeats_as.get(reading.phase)
    if again is None or not reading.starts:
        return state.startup.phase if again is not None and state.startup.phase == again else reading.phase
    been = any(span.name == reading.phase for span in state.startup.spans)
    return again if been else reading.phase


def enter(state: State, phase: Phase) -> State:
    """Enter a phase; the spans keep their order of time."""
    startup = state.startup
    if phase == startup.phase:
        return state
    spans = (*attempts.close_span(startup.spans, state.now_s), PhaseSpan(name=phase, from_s=state.now_s))
    return replace(state, startup=replace(startup, phase=phase, since_s=state.now_s, spans=spans[-60:], progress=None))


def on_log_reset(state: State, _fact: LogReset, _table: EngineTable) -> State:
    """The file began anew: its bytes and lines count from zero. A restart shows elsewhere (law 5)."""
    return processes.moved(replace(state, log=replace(state.log, size=0, line=0)), "the log began anew")


def on_log_unreadable(state: State, fact: LogUnreadable, _table: EngineTable) -> State:
    """Say that we are blind there; the server may be well."""
    return replace(state, log=replace(state.log, error=fact.error, missing=fact.missing))
