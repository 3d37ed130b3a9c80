"""Facts about the server's address: who listens, what answers, and whether a token came back (law 4)."""

from msgspec.structs import replace

from vigil.engine_table import EngineTable, Phase
from vigil.facts import MetricsSeen, PortClosed, PortOpened, ProbeAnswered, TokenAnswered
from vigil.verdict import logs
from vigil.verdict.effects import AskToken
from vigil.verdict.state import Serving, State

OK = 200
TOO_MANY_REQUESTS = 429
NO_SUCH_PATH = (404, 405, 501)
SPECULATING_TOKENS = 8  # enough for a draft to be verified: a broken one kills the engine at its first round


def on_port_opened(state: State, fact: PortOpened, _table: EngineTable) -> State:
    """Somebody listens on the port."""
    return replace(state, serving=replace(state.serving, port=fact, port_fact=state.n, port_s=state.now_s))


def on_port_closed(state: State, _fact: PortClosed, _table: EngineTable) -> State:
    """Nobody listens on the port."""
    return replace(state, serving=replace(state.serving, port=None, port_fact=state.n, port_s=None))


def on_probe_answered(state: State, fact: ProbeAnswered, table: EngineTable) -> State:
    """Remember what the model list or the health path answers now."""
    serving = state.serving
    if fact.probe == "models":
        answered_s = None if fact.status is None else (serving.models_s if _same_status(serving, fact) else state.now_s)
        serving = replace(serving, models=fact, models_s=answered_s, models_fact=state.n)
    elif fact.probe == "health":
        bad_s = None if fact.status == OK else (serving.health_bad_s or state.now_s)
        serving = replace(serving, health=fact, health_fact=state.n, health_bad_s=bad_s)
    state = replace(state, serving=serving)
    return _ready_by_weaker_sign(state, table)


def _same_status(serving: Serving, fact: ProbeAnswered) -> bool:
    return serving.models is not None and serving.models.status == fact.status and serving.models_s is not None


def _ready_by_weaker_sign(state: State, table: EngineTable) -> State:
    """Ready by health alone, where the user asked for no more, or an unknown program has no completions to ask for."""
    serving = state.serving
    health_ok = serving.health is not None and serving.health.status == OK
    if not health_ok or serving.ready_s is not None or foreign(state):
        return state
    if state.asked.ready == "http" or (state.asked.ready == "token" and not table.workers and no_completions(state)):
        return become_ready(state, "http", serving.health_fact)
    return state


def no_completions(state: State) -> bool:
    """Say whether the address has neither a model list nor completions: no inference server as we know them."""
    models, token = state.serving.models, state.serving.token
    return (
        models is not None
        and models.status in NO_SUCH_PATH
        and token is not None
        and token.status in NO_SUCH_PATH
        and token.tokens is None
    )


def foreign(state: State) -> bool:
    """Say whether another program than the watched one owns the port."""
    port = state.serving.port
    return port is not None and port.owner == "foreign"


def become_ready(state: State, level: str, fact: int) -> State:
    """Note that the present attempt serves, and by which level of proof."""
    life = state.process.life
    process = state.process
    if life is not None and life.ready_s is None:
        process = replace(process, life=replace(life, ready_s=state.now_s))
    serving = replace(state.serving, ready_s=state.now_s, ready_fact=fact, level=level)
    return logs.enter(replace(state, serving=serving, process=process), Phase.SERVING)


def on_token_answered(state: State, fact: TokenAnswered, table: EngineTable) -> State:
    """A completion came back, or did not."""
    serving = replace(state.serving, token=fact, token_fact=state.n, asked_s=None)
    served = fact.status == OK and fact.tokens is not None and fact.tokens > 0
    if not served:
        first_s = state.now_s if serving.fail_s is None else serving.fail_s
        failed = replace(state, serving=replace(serving, fails=serving.fails + 1, fail_s=first_s))
        return _ready_by_weaker_sign(failed, table)
    ours = serving.ours_since_metrics + (fact.tokens or 0)
    serving = replace(serving, fails=0, fail_s=None, token_s=state.now_s, ours_since_metrics=ours)
    worker = state.process.worker
    mended = worker is not None and not worker.known
    process = replace(state.process, worker=None) if mended else state.process
    state = replace(state, serving=serving, process=process)
    if serving.ready_s is None and not foreign(state):
        return become_ready(state, "token", state.n)
    return replace(state, serving=replace(serving, level="token")) if serving.level != "token" else state


def on_metrics_seen(state: State, fact: MetricsSeen, _table: EngineTable) -> State:
    """Tokens beyond our own mean that real traffic is served."""
    serving = state.serving
    before = serving.metrics
    grew = 0.0
    if before is not None and fact.tokens_total is not None and before.tokens_total is not None:
        grew = fact.tokens_total - before.tokens_total
    alive_s = state.now_s if grew > serving.ours_since_metrics else serving.alive_s
    return replace(state, serving=replace(serving, metrics=fact, alive_s=alive_s, ours_since_metrics=0))


def ask(state: State) -> AskToken | None:
    """Return the token request that should be made now, if any."""
    serving = state.serving
    process = state.process
    waits = serving.asked_s is not None or state.link.lost_s is not None or process.root is not None
    gone = process.seen and process.life is None
    if state.asked.job or not state.asked.serves or waits or gone or foreign(state) or state.asked.ready == "log":
        return None
    model = _model(state)
    if model is None:
        return None
    delay_s = _delay_s(state)
    if delay_s is None:
        return None
    ready = serving.ready_s is not None
    tokens = 1 if ready or not state.asked.speculation else SPECULATING_TOKENS
    return AskToken(tokens=tokens, timeout_s=_timeout_s(state), delay_s=delay_s, model=model)


def _timeout_s(state: State) -> float:
    policy = state.asked.policy
    if state.process.worker is not None:
        return policy.worker_patience_s
    return policy.token_timeout_s if state.serving.ready_s is not None else policy.token_patience_s


def _model(state: State) -> str | None:
    """Return the id to ask for: the one wanted, the first one listed, or "" where there is no list to go by; None: not yet."""
    serving = state.serving
    models = serving.models
    if models is None or models.status is None:
        return None
    if models.status == OK:
        wanted = state.asked.model
        if wanted is not None and wanted in models.models:
            return wanted
        return models.models[0] if models.models else ""
    return "" if models.status in NO_SUCH_PATH else None


def _delay_s(state: State) -> float | None:
    """Return how long to wait before the next token request; None: none is due."""
    serving = state.serving
    policy = state.asked.policy
    if serving.level == "http":
        return None
    if serving.fails:
        return min(0.1 * 2.0 ** min(serving.fails - 1, 6), 2.0) * state.asked.time_scale
    if serving.ready_s is None:
        return 0.0
    worker = state.process.worker
    last_s = serving.token_s or 0.0
    if worker is not None and last_s <= worker.at_s:
        return 0.0
    if serving.health_bad_s is not None and last_s <= serving.health_bad_s:
        return 0.0
    quiet_s = state.now_s - max(last_s, serving.alive_s or 0.0)
    return 0.0 if quiet_s >= policy.token_every_s else None
