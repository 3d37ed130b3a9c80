"""Verdicts on an address that answers and serves nothing of ours: another's port, a locked door, a green lie."""

from vigil.diagnosis.bearing import bearing
from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.seen import Seen
from vigil.screen import duration
from vigil.verdict import around
from vigil.verdict.served import ENOUGH_FAILS, busy, green, token_failure, unhealthy
from vigil.verdict.serving import KEY_REFUSED, REDIRECTS, foreign, no_completions
from vigil.verdict.state import Judgement, Serving, State
from vigil.verdict.view import View
from vigil.verdict.words import Evidence, Word

SERVER_ERROR = 500
LOADING = 503


def owned_by_another(view: View) -> Judgement | None:
    """Another program holds the port: whatever it answers says nothing about ours."""
    now = view.state.serving
    if now.port is None or now.port_s is None or not foreign(view.state):
        return None
    if not view.passed(now.port_s + view.policy.fail_patience_s):
        return None
    who = f"pid {now.port.pid} ({now.port.name})" if now.port.pid else "a process of another user"
    reason = f"port {now.port.port} is held by {who}, not by this server"
    cause = Cause(
        code="PORT001",
        kind="port_in_use",
        title="Another program listens on the port",
        text=f"port {now.port.port} is held by {who}",
        advice=f"End that process or choose another port: this server cannot answer on {now.port.port}.",
        fingerprint="port held by another program",
        sure=0.95,
        retry=False,
    )
    seen = (Evidence(text=reason, fact=now.port_fact), *_holder(view.state, cause))
    return Judgement(word=Word.UNHEALTHY, reason=reason, cause=cause, evidence=seen)


def _holder(state: State, cause: Cause) -> tuple[Evidence, ...]:
    """Return who holds the port, with its command line."""
    told = bearing(cause, End(seen=Seen(ports=state.around.seen.ports)))
    return around.evidence(state.around, told)


def locked(view: View) -> Judgement | None:
    """Say that it answers and refuses us: it wants a key that we do not hold."""
    now = view.state.serving
    status = _refused_status(view.state)
    if status is None or now.models_s is None or not view.passed(now.models_s + view.policy.fail_patience_s / 4):
        return None
    reason = (
        f"it answers {status}: it wants an API key that could not be read from its process; no token was proven "
        "(--api-key-env NAME)"
    )
    seen = (Evidence(text=reason, fact=now.models_fact),)
    return Judgement(word=Word.DEGRADED, reason=reason, level="http", evidence=seen)


def _refused_status(state: State) -> int | None:
    now = state.serving
    if now.token is not None and now.token.status in KEY_REFUSED:
        return now.token.status
    return now.models.status if now.models is not None and now.models.status in KEY_REFUSED else None


def redirecting(view: View) -> Judgement | None:
    """Say that it sends us elsewhere: a proxy's log-in page, not an inference server."""
    now = view.state.serving
    models = now.models
    if models is None or models.status not in REDIRECTS or now.models_s is None:
        return None
    if not view.passed(now.models_s + view.policy.fail_patience_s):
        return None
    where = f" to {models.location}" if models.location else ""
    text = f"it redirects us{where} (HTTP {models.status}): no inference server answers there"
    return unhealthy(text, now.models_fact)


def failing(view: View) -> Judgement | None:
    """Say that it answers requests, and never with a token."""
    now = view.state.serving
    if _models_fail(now) and now.models_s is not None and view.passed(now.models_s + view.policy.fail_patience_s):
        status = now.models.status if now.models is not None else None
        return unhealthy(f"its model list fails with HTTP {status}{green(view.state)}", now.models_fact)
    if now.fails < ENOUGH_FAILS or now.fail_s is None or not view.passed(now.fail_s + view.policy.fail_patience_s):
        return None
    if no_completions(view.state):
        text = (
            "it has neither a model list nor completions: for another kind of server give --ready http or --ready log"
        )
        return unhealthy(text, now.token_fact)
    return busy(view) or unhealthy(f"{token_failure(view.state)}{green(view.state)}", now.token_fact)


def _models_fail(now: Serving) -> bool:
    """Say whether the model list answers with an error of the server; 503 is how engines say that they load."""
    status = now.models.status if now.models is not None else None
    return status is not None and status >= SERVER_ERROR and status != LOADING


def mute(view: View) -> Judgement | None:
    """Say that its port accepts connections and nothing ever answers; a start-up that moves is given more time."""
    state = view.state
    now = state.serving
    silent = now.models is not None and now.models.status is None and now.models.error == "timeout"
    if not silent or now.port is None or now.port_s is None or foreign(state):
        return None
    if not view.passed(max(now.port_s, state.movement.at_s) + view.policy.token_patience_s):
        return None
    text = f"its port {now.port.port} accepts connections, and nothing answers for {duration(view.now_s - now.port_s)}"
    return unhealthy(text, now.models_fact)


def hanging(view: View) -> Judgement | None:
    """Say that the first token does not come; a moving start-up (kernels being compiled) is given more time."""
    state = view.state
    now, worker = state.serving, state.process.worker
    if now.unanswered_s is None:
        return None
    patience_s = view.policy.token_patience_s if worker is None else view.policy.worker_patience_s
    if not view.passed(max(now.unanswered_s, state.movement.at_s) + patience_s):
        return None
    died = f" after its process {worker.pid} ({worker.name}) died" if worker is not None else ""
    waited = duration(view.now_s - now.unanswered_s)
    return busy(view) or unhealthy(f"it is up but no token came in {waited}{died}{green(state)}", now.models_fact)
