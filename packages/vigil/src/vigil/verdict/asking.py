"""When to ask for a token, and how: the proof that law 4 wants, at a price that a server does not feel."""

from msgspec.structs import replace

from vigil.verdict.effects import AskToken
from vigil.verdict.serving import (
    KEY_REFUSED,
    OK,
    REDIRECTS,
    SPECULATING_TOKENS,
    TOO_MANY_REQUESTS,
    UNAVAILABLE,
    foreign,
)
from vigil.verdict.state import State
from vigil.verdict.view import View

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
PORT_PATIENCE = 0.1  # share of `fail_patience_s` that the owner of an answering port may stay untold


def ask(view: View) -> AskToken | None:
    """Return the token request that should be made now, if any."""
    state = view.state
    if not _may_ask(state) or _under_way(view):
        return None
    model = _model(state)
    if model is None or not _port_known(view):
        return None
    delay_s = _delay_s(view)
    if delay_s is None:
        return None
    ready = state.serving.ready_s is not None
    tokens = 1 if ready or not state.asked.speculation else SPECULATING_TOKENS
    return AskToken(tokens=tokens, timeout_s=_timeout_s(state), delay_s=delay_s, model=model)


def note(state: State, request: AskToken) -> State:
    """Remember that a request was made."""
    serving = state.serving
    asked_s = state.now_s + request.delay_s
    first_s = asked_s if serving.unanswered_s is None else serving.unanswered_s
    return replace(state, next_s=0.0, serving=replace(serving, asked_s=asked_s, unanswered_s=first_s))


def _may_ask(state: State) -> bool:
    asked, process = state.asked, state.process
    if asked.job or not asked.serves or asked.ready != "token" or state.serving.level == "http":
        return False
    gone = process.root is not None or (process.life is None and bool(process.ended))
    return not gone and state.stop_by is None and state.link.lost_s is None and not foreign(state)


def _under_way(view: View) -> bool:
    """Say whether a request is out; one whose end was never told does not hold us up for ever."""
    asked_s = view.state.serving.asked_s
    if asked_s is None:
        return False
    return not view.passed(asked_s + _timeout_s(view.state) + view.policy.lost_after_s)


def _port_known(view: View) -> bool:
    """Say whether the port's owner was told: an answer may come a moment before it, from another program (law 4)."""
    serving = view.state.serving
    if serving.port is not None or serving.models_s is None:
        return True
    return view.passed(serving.models_s + PORT_PATIENCE * view.policy.fail_patience_s)


def _model(state: State) -> str | None:
    """Return the id to ask for: the one wanted, the first one listed, or "" where no list says; None: not yet."""
    models = state.serving.models
    wanted = state.asked.model
    if models is None or models.status is None:
        return None
    if models.status == OK:
        return wanted if wanted in models.models else next(iter(models.models), "")
    waits = (UNAVAILABLE, TOO_MANY_REQUESTS, *KEY_REFUSED)
    return None if models.status in waits or models.status in REDIRECTS else wanted or ""


def _timeout_s(state: State) -> float:
    policy = state.asked.policy
    worker = state.process.worker
    if worker is not None and (state.serving.token_s or 0.0) <= worker.at_s:
        return policy.worker_patience_s
    return policy.token_timeout_s if state.serving.ready_s is not None else policy.token_patience_s


def _delay_s(view: View) -> float | None:
    """Return how long to wait before the next token request; None: none is due."""
    serving = view.state.serving
    if serving.vain:
        return min(FIRST_PAUSE_S * 2.0 ** min(serving.vain - 1, 6), LONGEST_PAUSE_S) * view.state.asked.time_scale
    if serving.ready_s is None:
        return 0.0
    worker = view.state.process.worker
    last_s = serving.token_s or 0.0
    if worker is not None and last_s <= worker.at_s:
        return 0.0
    if serving.health_bad_s is not None and last_s <= serving.health_bad_s:
        return 0.0
    if serving.closed_s is not None and last_s <= serving.closed_s:
        return 0.0
    return 0.0 if view.passed(max(last_s, view.state.flow.alive_s or 0.0) + view.policy.token_every_s) else None
