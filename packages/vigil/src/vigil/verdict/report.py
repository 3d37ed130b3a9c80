"""The verdict as an object: a state, told whole."""

from vigil.engine_table import EngineTable
from vigil.verdict import attested
from vigil.verdict.attempts import tail
from vigil.verdict.state import Life, State
from vigil.verdict.words import EXIT_CODES, SERVING, Attempt, Verdict, Word

LOG_LINE_LIMIT = 500
_NEEDS_NO_LINES = frozenset({Word.READY, Word.BUSY, Word.FINISHED})


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
        tail=_tail(state, table),
        log=state.asked.log,
        host=state.asked.host,
        engine=table.name,
        url=state.asked.url,
        model=_model(state),
        expectations=attested.expectations(state) if judged.word in SERVING else (),
        warnings=_warnings(state),
    )


def _warnings(state: State) -> tuple[str, ...]:
    signs, worker = state.log.signs, state.process.worker
    blind = (f"the log cannot be read: {signs.error}",) if signs.error and not signs.missing else ()
    lost: tuple[str, ...] = ()
    if worker is not None and state.judged.word in SERVING:
        lost = (f"its process {worker.pid} ({worker.name}) died, though tokens still come",)
    said = attested.warnings(state) if state.judged.word in SERVING else ()
    return (*state.troubles, *blind, *lost, *said)


def _tail(state: State, table: EngineTable) -> tuple[tuple[int, str], ...]:
    """Return the last lines of the present attempt, or of the last one where this has none, for a verdict without a cause."""
    if state.judged.word in _NEEDS_NO_LINES or state.judged.cause is not None:
        return ()
    ended = state.process.ended
    lines = tail(state.log.chunks) if state.process.life is not None or not ended else ()
    lines = lines or (ended[-1].tail if ended else ())
    ours = tuple(
        f'"GET {path}' for path in (table.health_path, table.models_path)
    )  # answers to our own probes say nothing
    return tuple(
        (line.number, line.text[:LOG_LINE_LIMIT]) for line in lines if not any(one in line.text for one in ours)
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
