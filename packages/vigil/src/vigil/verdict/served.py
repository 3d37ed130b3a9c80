"""Verdicts on a server that was ready in this life: it is ready, busy, degraded, or does not serve any more."""

from msgspec.structs import replace

from vigil.screen import duration
from vigil.verdict import around, attested
from vigil.verdict.serving import OK
from vigil.verdict.state import Judgement, State
from vigil.verdict.view import View
from vigil.verdict.words import Evidence, Word

ENOUGH_FAILS = 3
SHOWN_MODELS = 5


def served_before(view: View) -> Judgement | None:
    """Say whether a server that was ready in this life still is."""
    now = view.state.serving
    if now.ready_s is None:
        return None
    sick = _sick(view)
    if sick is not None:
        return busy(view) or sick
    if attested.waits(view):
        return Judgement(word=Word.STARTING, reason=f"{_ready_reason(view.state)}; it is asked what its processes run")
    evidence = _ready_evidence(view.state)
    wanted = view.state.asked.model
    listed = now.models.models if now.models is not None else ()
    if wanted is not None and listed and wanted not in listed:
        reason = f"it serves {', '.join(listed[:SHOWN_MODELS])}, not {wanted}"
        return Judgement(word=Word.DEGRADED, reason=reason, level=now.level, evidence=evidence)
    unlike = unexpected(view.state)
    if unlike:
        return Judgement(
            word=Word.DEGRADED, reason=unlike[0], level=now.level, evidence=(*evidence, *_said(view.state))
        )
    return Judgement(word=Word.READY, reason=_ready_reason(view.state), level=now.level, evidence=evidence)


def unexpected(state: State) -> tuple[str, ...]:
    """Return, in words, which expectations are not met, and what runs instead."""
    failed = [one for one in attested.expectations(state) if not one.met]
    return tuple(f"it serves, but not as expected: {one.expectation}: {one.found}" for one in failed)


def _said(state: State) -> tuple[Evidence, ...]:
    now = state.attestation
    told = attested.expectations(state)
    return tuple(
        Evidence(
            text=f"{one.expectation}: {one.found}",
            fact=(now.measured_fact if one.expectation == "speculation" else now.seen_fact) or None,
        )
        for one in told
        if not one.met
    )


def _ready_reason(state: State) -> str:
    now = state.serving
    if now.level == "token":
        return "it served a token"
    if now.level == "http":
        extra = "" if state.asked.ready == "http" else "; it has no completion endpoint, so no token was proven"
        return f"its health path answers 200{extra}"
    return "its log says so; nothing was asked of it"


def _ready_evidence(state: State) -> tuple[Evidence, ...]:
    now = state.serving
    seen = (Evidence(text=_ready_reason(state), fact=now.ready_fact),)
    if now.port is None:
        return seen
    owners = {
        "ours": f"pid {now.port.pid} of the watched tree",
        "adopted": f"pid {now.port.pid}, watched since it owns the port",
    }
    owner = owners.get(now.port.owner, "owner not to be seen from here")
    return (*seen, Evidence(text=f"port {now.port.port}: {owner}", fact=now.port_fact))


def _sick(view: View) -> Judgement | None:
    """Say how a server that was ready fails to serve now, or None."""
    state = view.state
    now = state.serving
    half_s = view.policy.fail_patience_s / 2
    maimed = _maimed(view)
    if maimed is not None:
        return maimed
    if now.closed_s is not None and view.passed(now.closed_s + half_s):
        return unhealthy("nothing listens on its port any more", now.port_fact)
    if now.vain and now.token is not None and now.token.error == "timeout":
        waited = duration(now.token.latency_s)
        return unhealthy(
            f"a request has no answer for {waited}, though the process lives{green(state)}", now.token_fact
        )
    if now.fails >= ENOUGH_FAILS and now.fail_s is not None and view.passed(now.fail_s + half_s):
        return unhealthy(f"{token_failure(state)}{green(state)}", now.token_fact)
    return None


def _maimed(view: View) -> Judgement | None:
    """Say that a process of it died and no token came since: the main process is given a moment to follow it."""
    now, worker = view.state.serving, view.state.process.worker
    if worker is None or (now.token_s or 0.0) > worker.at_s or not (worker.known or now.vain):
        return None
    if view.state.asked.ready != "token" or not view.passed(worker.at_s + view.policy.worker_patience_s):
        return None
    oom = " by the kernel's OOM killer" if worker.oom_killed else ""
    text = f"its process {worker.pid} ({worker.name}) died{oom} while the main process lives on, and no token comes"
    sick = unhealthy(f"{text}{green(view.state)}", worker.fact)
    killed = around.kill_of(view.state.around, worker.pid, worker.at_s) if worker.oom_killed else ()
    return replace(sick, evidence=(*sick.evidence, *killed))


def busy(view: View) -> Judgement | None:
    """Tokens flow elsewhere: busy is not dead (law 9)."""
    now, flow = view.state.serving, view.state.flow
    if flow.alive_s is None or view.passed(flow.alive_s + view.policy.token_timeout_s):
        return None
    numbers = ""
    if flow.metrics is not None and flow.metrics.running is not None:
        numbers = f": {flow.metrics.running:.0f} requests run, {flow.metrics.waiting or 0:.0f} wait"
    reason = f"our own request had to wait too long, but tokens flow for others{numbers}"
    return Judgement(
        word=Word.BUSY, reason=reason, level=now.level, evidence=(Evidence(text=reason, fact=now.token_fact or None),)
    )


def unhealthy(reason: str, fact: int) -> Judgement:
    """Return the verdict, with the fact that shows it."""
    return Judgement(word=Word.UNHEALTHY, reason=reason, evidence=(Evidence(text=reason, fact=fact or None),))


def green(state: State) -> str:
    """Return words on a health path that says otherwise; of a server that hangs, only if it said so since then."""
    now = state.serving
    if now.health is None or now.health.status != OK or now.health_s is None:
        return ""
    hung_s = now.unanswered_s
    if hung_s is None and now.token is not None and now.token.error == "timeout":
        hung_s = (now.fail_s or state.now_s) - now.token.latency_s
    return "" if hung_s is not None and now.health_s <= hung_s else ", and its health path still answers 200"


def token_failure(state: State) -> str:
    """Return what comes in place of a token."""
    token = state.serving.token
    if token is None:
        return "no token comes"
    if token.status == OK:
        said = "no count of tokens" if token.tokens is None else "a count of 0"
        return f"completions answer 200 without a token ({said})"
    what = f"HTTP {token.status}" if token.status is not None else f"{token.error}"
    said = f" ({token.body[:160]})" if token.body else ""
    return f"completions fail with {what}{said}"
