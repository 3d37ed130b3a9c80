"""Facts about the server's address: who listens, what answers, and whether a token came back (law 4)."""

import math

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.facts import MetricsSeen, PortClosed, PortOpened, ProbeAnswered, TokenAnswered
from vigil.verdict import around, attempts
from vigil.verdict.startup import become_ready
from vigil.verdict.state import Flow, State

SAME_START_S = 1.0  # clocks are rounded: a start is another one from here on
OK = 200
TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503
NO_SUCH_PATH = (404, 405, 501)
REDIRECTS = range(300, 400)
KEY_REFUSED = (401, 403)
SPECULATING_TOKENS = 8  # enough for a draft to be verified: a broken one kills the engine at its first round


def on_port_opened(state: State, fact: PortOpened, _table: EngineTable) -> State:
    """Somebody listens on the port."""
    serving = state.serving
    known = serving.port is not None and serving.port.owner == fact.owner
    port_s = serving.port_s if known else state.now_s
    changed = replace(serving, port=fact, port_fact=state.n, port_s=port_s, closed_s=None)
    kept = state.around if fact.owner == "foreign" else around.without_port(state.around)
    return replace(state, serving=changed, around=kept)


def on_port_closed(state: State, _fact: PortClosed, _table: EngineTable) -> State:
    """Nobody listens on the port."""
    changed = replace(state.serving, port=None, port_fact=state.n, port_s=None, closed_s=state.now_s)
    return replace(state, serving=changed, around=around.without_port(state.around))


def on_probe_answered(state: State, fact: ProbeAnswered, table: EngineTable) -> State:
    """Remember what the model list or the health path answers now; the same again is no news."""
    state = _of_its_process(state, fact, table)
    serving = state.serving
    if fact.probe == "models" and not _same(serving.models, fact):
        same = serving.models is not None and serving.models.status == fact.status
        answered_s = None if fact.status is None else serving.models_s if same else state.now_s
        serving = replace(serving, models=fact, models_s=answered_s, models_fact=state.n)
    elif fact.probe == "health" and _same(serving.health, fact):
        serving = replace(serving, health_s=state.now_s)
    elif fact.probe == "health":
        bad_s = None if fact.status == OK else (serving.health_bad_s or state.now_s)
        serving = replace(serving, health=fact, health_fact=state.n, health_bad_s=bad_s, health_s=state.now_s)
    if serving is not state.serving:
        state = replace(state, serving=serving)
    return ready_by_weaker_sign(state, table)


def _of_its_process(state: State, fact: ProbeAnswered, table: EngineTable) -> State:
    """Take in when the answering process says that it started: another time is another process (law 5).

    Where a process is to be seen, that one decides. A server may answer by several processes, each with a time of its own: only
    one that started after the first answer of this life, by the clock of the host, is another life.
    """
    started_s = _unix_s(fact.server_started)
    if started_s is None or fact.status is None:
        return state
    known_s, first_s = state.serving.server_started_s, state.serving.answered_s
    life = state.process.life
    visible = life is not None and life.pid is not None
    if known_s is not None and first_s is not None and not visible and started_s - known_s > SAME_START_S:
        began_s = started_s - state.link.clock_s
        if began_s >= first_s:
            state = attempts.succeed(state, table)
            first_s = None
    now = state.serving
    changed = replace(now, server_started_s=started_s, answered_s=state.now_s if first_s is None else first_s)
    return replace(state, serving=changed)


def _unix_s(text: str) -> float | None:
    """Return the time that a header says, seconds since 1970."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _same(before: ProbeAnswered | None, fact: ProbeAnswered) -> bool:
    return (
        before is not None
        and before.status == fact.status
        and before.error == fact.error
        and before.models == fact.models
        and before.location == fact.location
    )


def ready_by_weaker_sign(state: State, table: EngineTable) -> State:
    """Ready by health alone, where the user asked for no more, or an unknown program has no completions to ask for."""
    serving = state.serving
    health_ok = serving.health is not None and serving.health.status == OK
    if not health_ok or serving.ready_s is not None or foreign(state):
        return state
    if state.asked.ready == "http" or (
        state.asked.ready == "token" and table.name == "generic" and no_completions(state)
    ):
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


def on_token_answered(state: State, fact: TokenAnswered, table: EngineTable) -> State:
    """Note that a completion came back, or what did instead."""
    if fact.status == OK and fact.tokens is not None and fact.tokens > 0:
        return _served(state, fact)
    serving = state.serving
    serving = replace(serving, token=fact, token_fact=state.n, asked_s=None, vain=serving.vain + 1)
    if fact.status is not None or fact.error != "timeout":
        serving = replace(serving, unanswered_s=None)
        loading = serving.ready_s is None and fact.status in {UNAVAILABLE, TOO_MANY_REQUESTS}
        if not loading:
            first_s = state.now_s if serving.fail_s is None else serving.fail_s
            serving = replace(serving, fails=serving.fails + 1, fail_s=first_s)
    return ready_by_weaker_sign(replace(state, serving=serving), table)


def _served(state: State, fact: TokenAnswered) -> State:
    """Note a token: whatever was doubted is mended."""
    serving = replace(
        state.serving,
        token=fact,
        token_fact=state.n,
        token_s=state.now_s,
        asked_s=None,
        unanswered_s=None,
        vain=0,
        fails=0,
        fail_s=None,
    )
    flow = replace(state.flow, ours_since_metrics=state.flow.ours_since_metrics + (fact.tokens or 0))
    worker = state.process.worker
    process = state.process if worker is None or worker.known else replace(state.process, worker=None)
    state = replace(state, serving=serving, flow=flow, process=process)
    if serving.ready_s is None and not foreign(state):
        return become_ready(state, "token", state.n)
    return replace(state, serving=replace(serving, level="token")) if serving.level != "token" else state


def on_metrics_seen(state: State, fact: MetricsSeen, _table: EngineTable) -> State:
    """Tokens beyond our own, those of a request under way or given up among them, mean that real traffic is served."""
    serving, flow = state.serving, state.flow
    before = flow.metrics
    grew = 0.0
    if before is not None and fact.tokens_total is not None and before.tokens_total is not None:
        grew = fact.tokens_total - before.tokens_total
    # Counters that were read just before our token was counted are told just after it: it shows in the next reading.
    ours = flow.ours_since_metrics + flow.ours_before
    ours += SPECULATING_TOKENS if serving.asked_s is not None or serving.vain else 0
    alive_s = state.now_s if grew > ours else flow.alive_s
    return replace(state, flow=Flow(metrics=fact, alive_s=alive_s, ours_before=flow.ours_since_metrics))
