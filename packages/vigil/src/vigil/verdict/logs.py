"""Facts about the log: what its lines say, which of them begin another life, and what is kept for the diagnosis."""

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.facts import Line, LogGrew, LogReset, LogUnreadable
from vigil.reading import Reading, read_lines
from vigil.verdict import attempts, startup
from vigil.verdict.movement import moved
from vigil.verdict.state import Life, State

# Access lines answer our own probes: the log growing by them says nothing about the start-up.
_ECHOES = ('"GET /', '"POST /', '"HEAD /', "log_server_r")
OPENING_LINES = 2  # so many lines, alike but for their numbers, open a life of which no banner tells


def on_log_grew(state: State, fact: LogGrew, table: EngineTable) -> State:
    """Take new lines in: keep them, read the engine's signs in them, notice a new life."""
    lines = fact.lines
    life = state.process.life
    if fact.history and life is not None and not life.late:
        lines = ()  # it was there before this process began
    begin = 0
    readings = read_lines(table, lines) if lines else {}
    for index in range(len(lines)) if _may_restart(state) else readings:
        reading = readings.get(index)
        if _opens_a_life(state, fact, index, reading, table):
            state = _kept(state, lines[begin:index])
            begin = index
            banner = reading is not None and reading.banner
            state = _new_life(state, table, history=fact.history, banner=banner)
        if reading is not None:
            state = _read(state, reading, table, history=fact.history)
    state = _grown(state, fact, lines[begin:])
    if fact.history or not _tells_something(fact, table):
        return state
    return moved(state, "the log grew")


def _grown(state: State, fact: LogGrew, lines: tuple[Line, ...]) -> State:
    """Note how far the log was read, and keep its lines."""
    log = state.log
    signs = log.signs
    if not signs.seen or signs.error:
        signs = replace(signs, seen=True, error="", missing=False)
    last = fact.lines[-1] if fact.lines else None
    log = replace(
        log,
        size=fact.size,
        inode=fact.inode or log.inode,
        last=log.last if last is None else last.text,
        line=log.line if last is None else last.number,
        grew_s=log.grew_s if fact.history else state.now_s,
        chunks=attempts.keep(log.chunks, lines) if lines else log.chunks,
        old=log.old or (fact.history and bool(lines)),
        reset=log.reset and not fact.lines,
        signs=signs,
    )
    state = replace(state, log=log)
    return state if len(log.opening) == OPENING_LINES or fact.history else _with_opening(state)


def _kept(state: State, lines: tuple[Line, ...]) -> State:
    """Keep the lines that end a life, before another one begins."""
    return replace(state, log=replace(state.log, chunks=attempts.keep(state.log.chunks, lines))) if lines else state


def _with_opening(state: State) -> State:
    """Note how the present life's lines begin, where its beginning was seen."""
    life = state.process.life
    if life is None or life.late:
        return state
    first = attempts.flat(state.log.chunks[:OPENING_LINES])[:OPENING_LINES]
    return replace(state, log=replace(state.log, opening=tuple(attempts.shape(line.text) for line in first)))


def _tells_something(fact: LogGrew, table: EngineTable) -> bool:
    """Say whether the growth is progress: lines that answer requests, ours among them, are none."""
    if not fact.lines:
        return fact.skipped == 0
    return any(not _echoes(line.text, table) for line in fact.lines)


def _echoes(text: str, table: EngineTable) -> bool:
    for echo in _ECHOES:
        if echo in text:
            return True
    return any(alive in text for alive in table.alive_lines)


def _may_restart(state: State) -> bool:
    """Say whether a line without any sign of the engine could be the first of another life."""
    life = state.process.life
    if life is None:
        return True
    if life.sure:
        return False
    log = state.log
    return log.signs.fatal_s is not None or log.reset or (life.by_log and life.pid is None)


def _opens_a_life(state: State, fact: LogGrew, index: int, reading: Reading | None, table: EngineTable) -> bool:
    """Say whether this line is the first of another life (law 5: identity, not sameness of text)."""
    process, life = state.process, state.process.life
    banner = reading is not None and reading.banner
    if fact.history:
        return banner
    if process.root is not None or (life is not None and life.sure):
        return False
    if life is None:
        return banner or not process.ended or _repeats_opening(state, fact.lines, index)
    if banner and (not life.opened or _banner_restarts(state, life, table)):
        return True
    return _repeats_opening(state, fact.lines, index) and _ended_before(state, life, table)


def _banner_restarts(state: State, life: Life, table: EngineTable) -> bool:
    """Say whether one more banner begins another life.

    While no process is to be seen it does. One that is seen and did not change lives on, and the banner may be a worker's, or
    read twice. Only a wrapper (`docker run`, `ssh`) can hide a restart: then the child that wrote the last banner has
    ended, or, where the wrapper has no such child here, the log shows how that life ended.
    """
    if life.pid is None or life.shed:
        return True
    log = state.log
    ended = log.signs.fatal_s is not None or log.reset
    return ended or attempts.why(state, life, log.chunks, table) is not None


def _repeats_opening(state: State, lines: tuple[Line, ...], index: int) -> bool:
    opening = state.log.opening
    if len(opening) < OPENING_LINES or opening[0] == opening[1]:
        return False
    here = lines[index : index + OPENING_LINES]
    return all(attempts.shape(line.text) == wanted for line, wanted in zip(here, opening, strict=False))


def _ended_before(state: State, life: Life, table: EngineTable) -> bool:
    """Say whether the life whose opening is repeated shows an end: programs repeat themselves without dying."""
    log = state.log
    if log.signs.fatal_s is not None or log.reset:
        return True
    return life.by_log and life.pid is None and attempts.why(state, life, log.chunks, table) is not None


def _new_life(state: State, table: EngineTable, *, history: bool, banner: bool) -> State:
    """Begin an attempt that only the log shows, or mark the present one as opened."""
    life = state.process.life
    log = state.log
    if history:  # an earlier life is told in full: only the last one may be the present one
        log = replace(log, chunks=(), signs=attempts.fresh(log.signs))
        return replace(state, log=log, startup=attempts.start_over(state, table))
    if life is None and not state.process.ended:
        return _first_life(state, table, banner=banner)
    if life is not None and banner and not life.opened and log.signs.fatal_s is None and not log.reset:
        opened = replace(life, opened=True, banner_s=state.now_s, shed=False)
        return replace(state, process=replace(state.process, life=opened))
    if life is not None and life.by_log and life.late and log.signs.fatal_s is None:
        new = replace(life, started_s=state.now_s, late=False)  # that life was over before we looked
        new = _opened(state, new, banner=banner)
        return attempts.begin(replace(state, log=replace(log, chunks=(), old=False)), new, table)
    state = attempts.end(state, table)
    new = _opened(state, Life(n=attempts.next_number(state), started_s=state.now_s, by_log=True), banner=banner)
    if life is not None:
        new = replace(new, pid=life.pid, start_ticks=life.start_ticks, command=life.command)
    return attempts.begin(state, new, table)


def _opened(state: State, life: Life, *, banner: bool) -> Life:
    return replace(life, opened=banner, banner_s=state.now_s if banner else None, shed=False)


def _first_life(state: State, table: EngineTable, *, banner: bool) -> State:
    """Take the first new line as a life's: of the one that the log told of before, unless that one had given up."""
    new = _opened(state, Life(n=1, started_s=state.now_s, by_log=True), banner=banner)
    if state.log.old and state.log.signs.fatal_s is None and not banner:
        return attempts.find(state, replace(new, late=True, opened=True), table)
    log = replace(state.log, chunks=(), old=False, signs=attempts.fresh(state.log.signs))
    return attempts.find(replace(state, log=log, startup=attempts.start_over(state, table)), new, table)


def _read(state: State, reading: Reading, table: EngineTable, *, history: bool) -> State:
    """Take in what one line says."""
    state = startup.take_in(state, reading, table)
    signs = state.log.signs
    if reading.fatal and signs.fatal_s is None:
        signs = replace(signs, fatal_s=state.now_s, fatal_fact=state.n, fatal_old=history)
    if reading.ready and not history and not signs.ready_fact:
        signs = replace(signs, ready_fact=state.n)
        if state.asked.ready == "log" and state.serving.ready_s is None:
            state = startup.become_ready(state, "log", state.n)
    if signs is not state.log.signs:
        state = replace(state, log=replace(state.log, signs=signs))
    if reading.alive and not history:
        state = replace(state, flow=replace(state.flow, alive_s=state.now_s))
    return state


def on_log_reset(state: State, _fact: LogReset, _table: EngineTable) -> State:
    """Count bytes and lines from zero: the file began anew. A restart shows elsewhere (law 5)."""
    return moved(replace(state, log=replace(state.log, size=0, line=0, reset=True)), "the log began anew")


def on_log_unreadable(state: State, fact: LogUnreadable, _table: EngineTable) -> State:
    """Say that we are blind there; the server may be well."""
    signs = replace(state.log.signs, error=fact.error, missing=fact.missing)
    return replace(state, log=replace(state.log, signs=signs))
