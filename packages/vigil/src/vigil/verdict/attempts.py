"""Attempts: when one begins and ends, and when several are a loop (law 6)."""

from collections.abc import Sequence

from msgspec.structs import replace

from vigil.diagnosis import diagnose
from vigil.diagnosis.cause import End
from vigil.engine_table import EngineTable, Phase
from vigil.facts import Line
from vigil.policy import Policy
from vigil.verdict.state import Life, Log, Movement, Serving, Startup, State
from vigil.verdict.words import PhaseSpan

KEPT_ENDED = 50
KEPT_LINES = 3000
KEPT_HEAD_CHUNKS = 8
CHUNK_LINES = 64


def first_phase(table: EngineTable) -> Phase:
    """Return where a life begins: engines in Python import for a long time before their first line."""
    return Phase.IMPORTING if table.imports else Phase.LAUNCHING


def next_number(state: State) -> int:
    """Return the number of the attempt that would begin now."""
    return (state.process.ended[-1].n if state.process.ended else 0) + 1


def begin(state: State, life: Life, first_phase: Phase) -> State:
    """Begin an attempt: its log lines, phases and answers start empty; the port is what it is."""
    seen = state.serving
    spans = (PhaseSpan(name=first_phase, from_s=state.now_s),)
    return replace(
        state,
        process=replace(state.process, life=life, worker=None, seen=state.process.seen or life.pid is not None),
        log=replace(state.log, chunks=(), ready_fact=0, fatal_s=None, opening=()),
        startup=Startup(phase=first_phase, since_s=state.now_s, spans=spans, quiet_s=state.startup.quiet_s),
        serving=Serving(port=seen.port, port_fact=seen.port_fact, port_s=seen.port_s),
        movement=Movement(at_s=state.now_s, what="a new attempt", last=state.movement.last),
    )


def end(
    state: State, table: EngineTable, *, code: int | None = None, signal: int | None = None, oom_killed: bool = False
) -> State:
    """End the present attempt and find out why it ended."""
    life = state.process.life
    if life is None:
        return state
    worker = state.process.worker
    how = End(
        code=code,
        signal=signal,
        oom_killed=oom_killed or (worker is not None and worker.oom_killed),
        phase=state.startup.phase,
        ready=life.ready_s is not None,
    )
    expected = state.stop_by is not None or (state.asked.job and code == 0)
    why = None if expected else diagnose(lines(state.log), how, table.name, state.asked.log)
    ended = replace(
        life,
        ended_s=state.now_s,
        ended_fact=state.n,
        code=code,
        signal=signal,
        oom_killed=how.oom_killed,
        why=why,
        phase=state.startup.phase,
    )
    spans = close_span(state.startup.spans, state.now_s)
    return replace(
        state,
        process=replace(state.process, life=None, ended=(*state.process.ended, ended)[-KEPT_ENDED:]),
        startup=replace(state.startup, spans=spans),
        serving=replace(state.serving, asked_s=None, ready_s=None),
    )


def close_span(spans: tuple[PhaseSpan, ...], now_s: float) -> tuple[PhaseSpan, ...]:
    """Return the spans with the last one closed."""
    if not spans or spans[-1].to_s is not None:
        return spans
    return (*spans[:-1], replace(spans[-1], to_s=now_s))


def lines(log: Log) -> Sequence[Line]:
    """Return the kept lines of the present attempt, in order."""
    return [line for chunk in log.chunks for line in chunk]


def keep(chunks: tuple[tuple[Line, ...], ...], new: tuple[Line, ...]) -> tuple[tuple[Line, ...], ...]:
    """Add lines, joining small chunks; of a long attempt keep its head, its tail, and what speaks of errors."""
    if chunks and len(chunks[-1]) + len(new) <= CHUNK_LINES:
        return (*chunks[:-1], chunks[-1] + new)
    chunks = (*chunks, new)
    if len(chunks) * CHUNK_LINES <= KEPT_LINES * 2 or sum(map(len, chunks)) <= KEPT_LINES:
        return chunks
    for index in range(KEPT_HEAD_CHUNKS, len(chunks) - KEPT_HEAD_CHUNKS):
        if not any("rror" in line.text or "Traceback" in line.text for line in chunks[index]):
            return chunks[:index] + chunks[index + 1 :]
    return chunks[:KEPT_HEAD_CHUNKS] + chunks[KEPT_HEAD_CHUNKS + 1 :]


def loop(ended: Sequence[Life], policy: Policy) -> tuple[int, bool] | None:
    """Say whether the attempts that ended are a loop: (how many are alike, whether a retry could mend it), or None."""
    if not ended:
        return None
    last = ended[-1]
    hopeless = last.why is not None and not last.why.retry
    alike = _count_alike(ended, policy.loop_window_s)
    if alike >= (policy.loop_same_hopeless if hopeless else policy.loop_same):
        return alike, not hopeless
    never_ready = 0
    for life in reversed(ended):
        if life.ready_s is not None:
            break
        never_ready += 1
    return (never_ready, True) if never_ready >= policy.loop_any else None


def _count_alike(ended: Sequence[Life], window_s: float) -> int:
    last = ended[-1]
    count = 0
    for life in reversed(ended):
        too_old = (last.ended_s or 0.0) - (life.ended_s or 0.0) > window_s
        if too_old or _likeness(life) != _likeness(last):
            break
        count += 1
    return count


def _likeness(life: Life) -> tuple[object, ...]:
    """What two attempts must share to have ended alike: the failure's fingerprint, or else how the process ended."""
    if life.why is not None:
        return (life.why.code, life.why.fingerprint)
    return (life.code, life.signal, life.ready_s is not None)
