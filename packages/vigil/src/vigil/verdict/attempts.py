"""Attempts: when one begins and ends, and when several are a loop (law 6)."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from vigil.diagnosis import Findings, examine
from vigil.diagnosis.cause import Cause, End
from vigil.engine_table import EngineTable, Phase
from vigil.facts import Line
from vigil.policy import Policy
from vigil.verdict import around
from vigil.verdict.state import Chunks, Flow, Life, Movement, Serving, Signs, Startup, State
from vigil.verdict.words import PhaseSpan

KEPT_ENDED = 50
KEPT_LINES = 3000  # a diagnosis reads about 250 a millisecond, and a death is to be told within 50
SLACK_LINES = 750  # given up beyond need, so that lines are not gone through at each new one
KEPT_ENDS = 8  # chunks at the head and at the tail
CHUNK_LINES = 64
TAIL_LINES = 6
_DIGITS = re.compile(r"\d+")


def shape(text: str) -> str:
    """Return a line or a command without its numbers: what two lives of the same program share."""
    return _DIGITS.sub("0", text)


def first_phase(table: EngineTable) -> Phase:
    """Return where a life begins: engines in Python import for a long time before their first line."""
    return Phase.IMPORTING if table.imports else Phase.LAUNCHING


def next_number(state: State) -> int:
    """Return the number of the attempt that would begin now."""
    return (state.process.ended[-1].n if state.process.ended else 0) + 1


def begin(state: State, life: Life, table: EngineTable) -> State:
    """Begin an attempt: its phases, signs and answers start empty; the port is what it is.

    Lines that came since the last end are its own: the observer reads a dead attempt's log to its end first.
    """
    return replace(
        state,
        process=replace(state.process, life=life, worker=None, seen=state.process.seen or life.pid is not None),
        log=replace(state.log, opening=(), signs=fresh(state.log.signs)),
        startup=start_over(state, table, life.started_s),
        serving=_standing_answers(state),
        flow=Flow(),
        movement=Movement(at_s=state.now_s, what="a new attempt", base=state.movement.last, last=state.movement.last),
    )


def _standing_answers(state: State) -> Serving:
    """Return the port, and what standing probes have answered since the last end: the same again is told seldom.

    A server may answer a moment before its process is seen.
    """
    seen = state.serving
    kept = Serving(port=seen.port, port_fact=seen.port_fact, port_s=seen.port_s)
    over = state.process.ended[-1].ended_fact if state.process.ended else 0
    if seen.models_fact > over:
        kept = replace(kept, models=seen.models, models_s=seen.models_s, models_fact=seen.models_fact)
    if seen.health_fact > over:
        kept = replace(kept, health=seen.health, health_fact=seen.health_fact, health_bad_s=seen.health_bad_s)
    return kept


def find(state: State, life: Life, table: EngineTable) -> State:
    """Take up an attempt that ran before it was seen: what its log and its address told already is its own."""
    life = replace(life, ready_s=state.serving.ready_s)
    return replace(
        state,
        process=replace(state.process, life=life, seen=state.process.seen or life.pid is not None),
        startup=state.startup if state.startup.spans else start_over(state, table),
    )


def start_over(state: State, table: EngineTable, since_s: float | None = None) -> Startup:
    """Return the start-up of a life that begins now; how long phases were quiet before is remembered."""
    phase = first_phase(table)
    spans = (PhaseSpan(name=phase, from_s=state.now_s if since_s is None else since_s),)
    return Startup(phase=phase, since_s=state.now_s, spans=spans, quiet_s=state.startup.quiet_s)


def end(
    state: State, table: EngineTable, *, code: int | None = None, signal: int | None = None, oom_killed: bool = False
) -> State:
    """End the present attempt and find out why it ended."""
    life = state.process.life
    if life is None:
        return state
    worker = state.process.worker
    oom_killed = oom_killed or (worker is not None and worker.oom_killed)
    ended = replace(
        life,
        ended_s=state.now_s,
        ended_fact=state.n,
        code=code,
        signal=signal,
        oom_killed=oom_killed,
        asked=state.stop_by is not None or (state.asked.job and code == 0),
        phase=state.startup.phase,
        tail=tail(state.log.chunks),
        around=around.at_the_end(state.around, state.now_s),
    )
    ended = ended if ended.asked else explain(state, ended, state.log.chunks, table)
    spans = close_span(state.startup.spans, state.now_s)
    return replace(
        state,
        process=replace(state.process, life=None, ended=(*state.process.ended, ended)[-KEPT_ENDED:]),
        log=replace(state.log, chunks=(), before=state.log.chunks),
        startup=replace(state.startup, spans=spans),
        serving=replace(state.serving, asked_s=None, unanswered_s=None, ready_s=None, level=None),
        around=around.after_an_end(state.around),
        waiting_s=state.waiting_s if ended.ready_s is None else state.now_s,
    )


def succeed(state: State, table: EngineTable) -> State:
    """End a life of which only the address tells, and begin the one that answers now."""
    life = state.process.life
    if life is None:
        life = Life(n=next_number(state), started_s=0.0, ready_s=state.serving.ready_s)
    state = end(replace(state, process=replace(state.process, life=life)), table)
    return begin(state, Life(n=next_number(state), started_s=state.now_s), table)


def learn_exit(state: State, table: EngineTable, code: int | None, signal: int | None) -> State:
    """Take the root's exit for the last attempt's, where the kernel told that one's to its parent only.

    A shell ends as its last command did; what the log could not explain, the exit may.
    """
    ended = state.process.ended
    if not ended or ended[-1].code is not None or ended[-1].signal is not None or ended[-1].asked:
        return state
    last = replace(ended[-1], code=code, signal=signal)
    if last.why is None:
        last = explain(state, last, state.log.before, table)
    return replace(state, process=replace(state.process, ended=(*ended[:-1], last)))


def why(state: State, life: Life, chunks: Chunks, table: EngineTable) -> Cause | None:
    """Return the cause of an end, as far as the attempt's lines, its exit and its host show one."""
    return _findings(state, life, chunks, table).cause


def explain(state: State, life: Life, chunks: Chunks, table: EngineTable) -> Life:
    """Return a life that has ended with its cause, and with what its host showed that bears on it."""
    found = _findings(state, life, chunks, table)
    return replace(life, why=found.cause, told=around.evidence(life.around, found.told))


def _findings(state: State, life: Life, chunks: Chunks, table: EngineTable) -> Findings:
    how = End(
        code=life.code,
        signal=life.signal,
        oom_killed=life.oom_killed,
        phase=life.phase or state.startup.phase,
        ready=life.ready_s is not None,
        over=True,
        seen=life.around.seen,
    )
    return examine(flat(chunks), how, table, state.asked.log)


def fresh(signs: Signs) -> Signs:
    """Return the signs as they stand where another life's lines begin."""
    return replace(signs, ready_fact=0, fatal_s=None, fatal_fact=0, fatal_old=False)


def close_span(spans: tuple[PhaseSpan, ...], now_s: float) -> tuple[PhaseSpan, ...]:
    """Return the spans with the last one closed."""
    if not spans or spans[-1].to_s is not None:
        return spans
    return (*spans[:-1], replace(spans[-1], to_s=now_s))


def flat(chunks: Chunks) -> Sequence[Line]:
    """Return kept lines in order."""
    return [line for chunk in chunks for line in chunk]


def tail(chunks: Chunks) -> tuple[Line, ...]:
    """Return the last few of the kept lines."""
    last = chunks[-1] if chunks else ()
    if len(last) < TAIL_LINES and len(chunks) > 1:
        last = chunks[-2] + last
    return last[-TAIL_LINES:]


def keep(chunks: Chunks, new: tuple[Line, ...]) -> Chunks:
    """Add lines, joining small chunks; of a long attempt keep its head, its tail, and what speaks of errors."""
    if chunks and len(chunks[-1]) + len(new) <= CHUNK_LINES:
        return (*chunks[:-1], chunks[-1] + new)
    pieces = (new[begin : begin + CHUNK_LINES] for begin in range(0, len(new), CHUNK_LINES))
    chunks = (*chunks, *pieces)
    over = sum(map(len, chunks)) - KEPT_LINES
    return chunks if over <= 0 else _thinned(chunks, over + SLACK_LINES)


def _thinned(chunks: Chunks, over: int) -> Chunks:
    """Give up `over` lines between head and tail: the oldest that speak of no error, else the oldest."""
    kept: list[tuple[Line, ...]] = []
    for index, chunk in enumerate(chunks):
        middle = KEPT_ENDS <= index < len(chunks) - KEPT_ENDS
        if over > 0 and middle and not any("rror" in line.text or "Traceback" in line.text for line in chunk):
            over -= len(chunk)
        else:
            kept.append(chunk)
    while over > 0 and len(kept) > 2 * KEPT_ENDS:
        over -= len(kept.pop(KEPT_ENDS))
    return tuple(kept)


def loop(ended: Sequence[Life], policy: Policy, *, job: bool) -> tuple[int, bool] | None:
    """Say whether the attempts that ended are a loop: (how many are alike, whether a retry could mend it), or None."""
    if not ended or not _failed(ended[-1], job=job):
        return None
    last = ended[-1]
    hopeless = last.why is not None and not last.why.retry
    alike = 0
    for life in reversed(ended):
        if not _near(life, last, policy) or not _failed(life, job=job) or _likeness(life) != _likeness(last):
            break
        alike += 1
    if alike >= (policy.loop_same_hopeless if hopeless else policy.loop_same):
        return alike, not hopeless
    never_ready = 0
    for life in reversed(ended):
        if life.ready_s is not None or life.command != last.command or not _failed(life, job=job):
            break
        never_ready += 1
    return (never_ready, True) if never_ready >= policy.loop_any else None


def _near(life: Life, last: Life, policy: Policy) -> bool:
    return (last.ended_s or 0.0) - (life.ended_s or 0.0) <= policy.loop_window_s


def _failed(life: Life, *, job: bool) -> bool:
    """Say whether an end counts: none that was asked for; of a job's steps only those that show a failure."""
    if life.asked:
        return False
    return not job or life.why is not None or bool(life.code) or life.signal is not None


def _likeness(life: Life) -> tuple[object, ...]:
    """Return what two attempts must share to have ended alike.

    The failure's fingerprint, or else the command and how it ended: the steps of a script are different commands.
    """
    if life.why is not None:
        return (life.why.code, life.why.fingerprint)
    return (life.command, life.code, life.signal, life.ready_s is not None)
