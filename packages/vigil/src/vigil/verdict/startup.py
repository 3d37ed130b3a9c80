"""Where a start-up is: its phases, and the moment from which it serves."""

from msgspec.structs import replace

from vigil.engine_table import EngineTable, Phase
from vigil.reading import Reading
from vigil.verdict.attempts import close_span
from vigil.verdict.state import State
from vigil.verdict.words import PhaseSpan

KEPT_SPANS = 60


def take_in(state: State, reading: Reading, table: EngineTable) -> State:
    """Take in what a line says of phase and progress; once it serves, a start-up is over and nothing moves it back."""
    if state.serving.ready_s is not None:
        return state
    if reading.phase is not None:
        state = enter(state, _phase_of(state, reading.phase, table, starts=reading.starts))
    if reading.done is None or reading.total is None:
        return state
    return replace(state, startup=replace(state.startup, progress=(reading.done, reading.total)))


def _phase_of(state: State, phase: Phase, table: EngineTable, *, starts: bool) -> Phase:
    """Return the phase that a line means here: a second load of weights is the draft's."""
    again = table.repeats_as.get(phase)
    if again is None:
        return phase
    if not starts:
        return again if state.startup.phase == again else phase
    return again if any(span.name == phase for span in state.startup.spans) else phase


def enter(state: State, phase: Phase) -> State:
    """Enter a phase; the spans keep their order of time."""
    startup = state.startup
    if phase == startup.phase:
        return state
    spans = (*close_span(startup.spans, state.now_s), PhaseSpan(name=phase, from_s=state.now_s))
    changed = replace(startup, phase=phase, since_s=state.now_s, spans=spans[-KEPT_SPANS:], progress=None)
    return replace(state, startup=changed)


def become_ready(state: State, level: str, fact: int) -> State:
    """Note that the present attempt serves, and by which level of proof."""
    process = state.process
    if process.life is not None and process.life.ready_s is None:
        process = replace(process, life=replace(process.life, ready_s=state.now_s))
    state = enter(state, Phase.SERVING)
    serving = replace(state.serving, ready_s=state.now_s, ready_fact=fact, level=level)
    return replace(state, serving=serving, process=process)
