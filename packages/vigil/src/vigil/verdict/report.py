"""The verdict as an object: a state, told whole."""

from vigil.engine_table import EngineTable
from vigil.verdict.state import Life, State
from vigil.verdict.words import EXIT_CODES, Attempt, Verdict

LOG_LINE_LIMIT = 500


def report(state: State, table: EngineTable) -> Verdict:
    """Return the verdict that a state amounts to, with its evidence, attempts and phases."""
    judged = state.judged
    port = state.serving.port
    owner = None if port is None else {"ours": "verified", "adopted": "adopted"}.get(port.owner, port.owner)
    return Verdict(
        name=state.asked.name,
        word=judged.word,
        exit_code=EXIT_CODES[judged.word],
        since_s=round(state.now_s, 3),
        phase=state.startup.phase,
        ready_level=judged.level,
        owner=owner,
        reason=judged.reason,
        cause=judged.cause,
        evidence=judged.evidence,
        attempts=attempts(state),
        phases=state.startup.spans,
        progress=state.startup.progress,
        expected_s=state.asked.expected_s,
        last_line=state.log.last[:LOG_LINE_LIMIT],
        log=state.asked.log,
        host=state.asked.host,
        engine=table.name,
        url=state.asked.url,
        model=_model(state),
        warnings=(
            *state.troubles,
            *((f"the log cannot be read: {state.log.error}",) if state.log.error and not state.log.missing else ()),
        ),
    )


def attempts(state: State) -> tuple[Attempt, ...]:
    """Return every attempt that is remembered, the present one last."""
    lives = (*state.process.ended, *((state.process.life,) if state.process.life else ()))
    return tuple(_attempt(life) for life in lives)


def _attempt(life: Life) -> Attempt:
    return Attempt(
        n=life.n,
        pid=life.pid,
        started_s=life.started_s,
        ended_s=life.ended_s,
        ready_s=life.ready_s,
        exit=life.code,
        signal=life.signal,
        cause=life.why.code if life.why else None,
    )


def _model(state: State) -> str | None:
    token, models = state.serving.token, state.serving.models
    if token is not None and token.model:
        return token.model
    return models.models[0] if models is not None and models.models else None
