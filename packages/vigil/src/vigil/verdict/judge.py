"""What a state means: the first rule that speaks decides. Rules look at a state and nothing else."""

from collections.abc import Callable

from msgspec.structs import replace

from vigil.diagnosis.cause import Cause
from vigil.engine_table import EngineTable
from vigil.screen import duration
from vigil.verdict import attempts, serving, stall
from vigil.verdict.state import Judgement, Life, State
from vigil.verdict.words import Evidence, Word

Rule = Callable[[State, EngineTable], Judgement | None]
SERVER_ERROR = 500
REDIRECTS = range(300, 400)
KEY_REFUSED = (401, 403)
ENOUGH_FAILS = 3


def judge(state: State, table: EngineTable) -> Judgement:
    """Return the meaning of a state; the same object as before where nothing changed."""
    for rule in RULES:
        judged = rule(state, table)
        if judged is not None:
            return state.judged if judged == state.judged else judged
    return state.judged


def unreachable(state: State, _table: EngineTable) -> Judgement | None:
    """The connection is gone for good, or for longer than we wait."""
    link = state.link
    if link.lost_s is None:
        return None
    gone_s = state.now_s - link.lost_s
    if not link.final and gone_s <= state.asked.policy.unreachable_after_s:
        return replace(
            state.judged, reason=f"connection lost ({link.lost_why}), trying again; last known: {state.judged.word}"
        )
    known = f"last known: {state.judged.word}, {duration(max(0.0, link.lost_s))} after the start of the watching"
    reason = f"{state.asked.host} cannot be reached: {link.lost_why}; {known}"
    return Judgement(word=Word.UNREACHABLE, reason=reason, evidence=(Evidence(text=link.lost_why),))


def over(state: State, table: EngineTable) -> Judgement | None:
    """Everything has ended."""
    root = state.process.root
    if root is None:
        return None
    how = Evidence(text=_how(root.code, root.signal, oom_killed=root.oom_killed), fact=state.process.root_fact)
    if root.rebooted:
        cause = _reboot_cause()
        return Judgement(
            word=Word.CRASHED,
            reason="the host was rebooted: nothing of that start is left",
            cause=cause,
            evidence=(how,),
        )
    if state.stop_by is not None:
        return Judgement(word=Word.STOPPED, reason=f"stopped by {state.stop_by}", evidence=(how, *_leftovers(state)))
    if state.asked.job and root.code == 0:
        return Judgement(
            word=Word.FINISHED, reason="the job ended by itself with exit code 0", evidence=(how, *_leftovers(state))
        )
    looped = looping(state, table)
    if looped is not None:
        return replace(looped, evidence=(how, *looped.evidence))
    last = state.process.ended[-1] if state.process.ended else None
    return _crashed(state, last, (how, *_leftovers(state)))


def _crashed(state: State, last: Life | None, evidence: tuple[Evidence, ...]) -> Judgement:
    cause = last.why if last else None
    how = _how(last.code, last.signal, oom_killed=last.oom_killed) if last else "it ended"
    when = _when(last) if last else ""
    lies = (
        " (exit code 0 is a crash here: nobody asked it to end)"
        if last and last.code == 0 and not state.asked.job
        else ""
    )
    return Judgement(word=Word.CRASHED, reason=f"{how} {when}{lies}".strip(), cause=cause, evidence=evidence)


def _when(life: Life) -> str:
    lived_s = (life.ended_s or 0.0) - life.started_s
    if life.ready_s is not None:
        return f"{duration((life.ended_s or 0.0) - life.ready_s)} after it was ready"
    return f"after {duration(lived_s)}, in phase {life.phase}"


def _leftovers(state: State) -> tuple[Evidence, ...]:
    root = state.process.root
    if root is None or not root.left:
        return ()
    return (
        Evidence(
            text=f"{root.left} processes of its tree were left behind and were ended", fact=state.process.root_fact
        ),
    )


def _how(code: int | None, signal: int | None, *, oom_killed: bool) -> str:
    if signal is not None:
        return f"killed by signal {signal}" + (" (the kernel's OOM killer)" if oom_killed else "")
    return f"exit code {code}" if code is not None else "its process ended (the exit code is known to its parent only)"


def _reboot_cause() -> Cause:
    return Cause(
        code="HOST001",
        kind="host_rebooted",
        title="The host was rebooted",
        text="the boot id of the host changed",
        advice="Find out why the host rebooted (`last -x`, `journalctl -b -1 -e`), then start the server again.",
        fingerprint="host rebooted",
        sure=1.0,
        retry=True,
    )


def looping(state: State, _table: EngineTable) -> Judgement | None:
    """Attempts that end alike (law 6). A start that is ready now is no loop."""
    ended = state.process.ended
    if not ended or state.serving.ready_s is not None:
        return None
    found = attempts.loop(ended, state.asked.policy)
    if found is None:
        return None
    alike, retry = found
    last = ended[-1]
    so = "a retry cannot mend that" if not retry else f"{alike} attempts in a row ended alike"
    why = f": {last.why.title or last.why.kind}" if last.why else ""
    how = _how(last.code, last.signal, oom_killed=last.oom_killed)
    reason = f"attempt {last.n} ended like {alike - 1} before it{why} ({how}, {_when(last)}); {so}"
    seen = tuple(
        Evidence(text=f"attempt {life.n} (pid {life.pid}): {_when(life)}", fact=life.ended_fact)
        for life in ended[-alike:]
    )
    return Judgement(word=Word.CRASH_LOOPING, reason=reason, cause=last.why, evidence=seen[-5:])


def abandoned(state: State, _table: EngineTable) -> Judgement | None:
    """The last attempt ended, what could start another is there, and does not."""
    process = state.process
    if process.life is not None or not process.ended:
        return None
    last = process.ended[-1]
    waited_s = state.now_s - (last.ended_s or 0.0)
    if waited_s < state.asked.policy.restart_patience_s:
        return None
    evidence = (Evidence(text=f"no new attempt for {duration(waited_s)}", fact=last.ended_fact),)
    return _crashed(state, last, evidence)


def owned_by_another(state: State, _table: EngineTable) -> Judgement | None:
    """Another program holds the port: whatever it answers says nothing about ours."""
    port = state.serving.port
    since_s = state.serving.port_s
    if port is None or since_s is None or not serving.foreign(state):
        return None
    if state.now_s - since_s < state.asked.policy.fail_patience_s:
        return None
    who = f"pid {port.pid} ({port.name})" if port.pid else "a process of another user"
    cause = Cause(
        code="PORT001",
        kind="port_in_use",
        title="Another program listens on the port",
        text=f"port {port.port} is held by {who}",
        advice=f"End that process or choose another port: the server that you started cannot answer on {port.port}.",
        fingerprint="port held by another program",
        sure=0.95,
        retry=False,
    )
    reason = f"port {port.port} is held by {who}, not by this server"
    return Judgement(
        word=Word.UNHEALTHY, reason=reason, cause=cause, evidence=(Evidence(text=reason, fact=state.serving.port_fact),)
    )


def served_before(state: State, _table: EngineTable) -> Judgement | None:
    """It was ready in this life: it is ready, busy, or does not serve any more."""
    now = state.serving
    if now.ready_s is None:
        return None
    sick = _sick(state)
    if sick is not None:
        return _busy(state) or sick
    evidence = _ready_evidence(state)
    wanted = state.asked.model
    listed = now.models.models if now.models is not None else ()
    if wanted is not None and listed and wanted not in listed:
        reason = f"it serves {', '.join(listed[:5])}, not {wanted}"
        return Judgement(word=Word.DEGRADED, reason=reason, level=now.level, evidence=evidence)
    return Judgement(word=Word.READY, reason=_ready_reason(state), level=now.level, evidence=evidence)


def _ready_reason(state: State) -> str:
    now = state.serving
    if now.level == "token":
        latency = f" in {duration(now.token.latency_s)}" if now.token and now.token.tokens else ""
        return f"it served a token{latency}"
    if now.level == "http":
        extra = "" if state.asked.ready == "http" else "; it has no completion endpoint, so no token was proven"
        return f"its health path answers 200{extra}"
    return "its log says so; nothing was asked of it"


def _ready_evidence(state: State) -> tuple[Evidence, ...]:
    now = state.serving
    seen = [Evidence(text=_ready_reason(state), fact=now.ready_fact)]
    if now.port is not None:
        owner = {
            "ours": f"pid {now.port.pid} of the watched tree",
            "adopted": f"pid {now.port.pid}, watched since it owns the port",
        }
        seen.append(
            Evidence(
                text=f"port {now.port.port}: {owner.get(now.port.owner, 'owner not to be seen from here')}",
                fact=now.port_fact,
            )
        )
    return tuple(seen)


def _sick(state: State) -> Judgement | None:
    """Say how a server that was ready fails to serve now, or None."""
    now = state.serving
    policy = state.asked.policy
    worker = state.process.worker
    if worker is not None and (worker.known or now.fails) and (now.token_s or 0.0) <= worker.at_s:
        oom = " by the kernel's OOM killer" if worker.oom_killed else ""
        text = f"its process {worker.pid} ({worker.name}) died{oom} while the main process lives on"
        if now.fails or state.now_s - worker.at_s >= policy.worker_patience_s:
            return _unhealthy(f"{text}, and no token comes", worker.fact)
    if now.token is not None and now.fails and now.token.error == "timeout":
        return _unhealthy(
            f"a request has no answer for {duration(now.token.latency_s)}, though the process lives{_green(state)}",
            now.token_fact,
        )
    failing_s = state.now_s - now.fail_s if now.fail_s is not None else 0.0
    if now.fails >= ENOUGH_FAILS and failing_s >= policy.fail_patience_s / 2:
        return _unhealthy(f"{_token_failure(state)}{_green(state)}", now.token_fact)
    return None


def _busy(state: State) -> Judgement | None:
    """Tokens flow elsewhere: busy is not dead (law 9)."""
    now = state.serving
    policy = state.asked.policy
    if now.alive_s is None or state.now_s - now.alive_s > policy.token_timeout_s:
        return None
    numbers = ""
    if now.metrics is not None and now.metrics.running is not None:
        numbers = f": {now.metrics.running:.0f} requests run, {now.metrics.waiting or 0:.0f} wait"
    reason = f"our own request had to wait too long, but tokens flow for others{numbers}"
    return Judgement(
        word=Word.BUSY, reason=reason, level=now.level, evidence=(Evidence(text=reason, fact=now.token_fact),)
    )


def _unhealthy(reason: str, fact: int) -> Judgement:
    return Judgement(word=Word.UNHEALTHY, reason=reason, evidence=(Evidence(text=reason, fact=fact or None),))


def _green(state: State) -> str:
    health = state.serving.health
    return ", and its health path still answers 200" if health is not None and health.status == serving.OK else ""


def _token_failure(state: State) -> str:
    token = state.serving.token
    if token is None:
        return "no token comes"
    if token.status == serving.OK:
        return "completions answer 200 without a token"
    what = f"HTTP {token.status}" if token.status is not None else f"{token.error}"
    said = f" ({token.body[:160]})" if token.body else ""
    return f"completions fail with {what}{said}"


def ready_by_log(state: State, _table: EngineTable) -> Judgement | None:
    """The log's own word, where the user asked for no more."""
    if state.asked.ready != "log" or not state.log.ready_fact:
        return None
    return Judgement(
        word=Word.READY,
        reason="its log says so; nothing was asked of it",
        level="log",
        evidence=(Evidence(text="the engine's ready line", fact=state.log.ready_fact),),
    )


def locked(state: State, _table: EngineTable) -> Judgement | None:
    """It answers, and refuses us: it wants a key that we do not hold."""
    now = state.serving
    status = _refused_status(state)
    if status is None or now.models_s is None or state.now_s - now.models_s < state.asked.policy.fail_patience_s / 4:
        return None
    reason = f"it answers {status}: it wants an API key that could not be read from its process; no token was proven (--api-key-env NAME)"
    return Judgement(
        word=Word.DEGRADED, reason=reason, level="http", evidence=(Evidence(text=reason, fact=now.models_fact),)
    )


def _refused_status(state: State) -> int | None:
    now = state.serving
    if now.token is not None and now.token.status in KEY_REFUSED:
        return now.token.status
    return now.models.status if now.models is not None and now.models.status in KEY_REFUSED else None


def lying(state: State, _table: EngineTable) -> Judgement | None:
    """It says that it is up, and serves nothing."""
    now = state.serving
    policy = state.asked.policy
    if state.asked.job or now.models is None:
        return None
    if (
        now.models.status in REDIRECTS
        and now.models_s is not None
        and state.now_s - now.models_s >= policy.fail_patience_s
    ):
        where = f" to {now.models.location}" if now.models.location else ""
        return _unhealthy(
            f"it redirects us{where} (HTTP {now.models.status}): no inference server answers there", now.models_fact
        )
    failing_s = state.now_s - now.fail_s if now.fail_s is not None else 0.0
    if now.fails >= ENOUGH_FAILS and failing_s >= policy.fail_patience_s and not _only_waits(state):
        return _busy(state) or _unhealthy(f"{_token_failure(state)}{_green(state)}", now.token_fact)
    return _hanging(state)


def _only_waits(state: State) -> bool:
    """A server that says 503 (loading) or 429 to completions is starting, as long as it moves."""
    token = state.serving.token
    return (
        token is not None
        and token.status in (503, serving.TOO_MANY_REQUESTS)
        and state.now_s - state.movement.at_s < 1.0
    )


def _hanging(state: State) -> Judgement | None:
    """The first token does not come; a moving start-up (kernels being compiled) is given more time."""
    now = state.serving
    policy = state.asked.policy
    if now.asked_ever_s is None or (now.token is not None and now.token.error not in (None, "timeout")):
        return None
    if now.asked_s is None and now.fails == 0:
        return None
    patience_s = policy.worker_patience_s if state.process.worker is not None else policy.token_patience_s
    waited_s = state.now_s - max(now.asked_ever_s, state.movement.at_s)
    if waited_s < patience_s:
        return None
    worker = state.process.worker
    died = f" after its process {worker.pid} ({worker.name}) died" if worker is not None else ""
    reason = f"it is up but no token came in {duration(state.now_s - now.asked_ever_s)}{died}{_green(state)}"
    return _busy(state) or _unhealthy(reason, now.models_fact)


def stalled(state: State, table: EngineTable) -> Judgement | None:
    """No progress for longer than this phase may take (law 7)."""
    quiet = stall.found(state, table)
    if quiet is None:
        return None
    return Judgement(word=Word.STALLED, reason=quiet.reason, evidence=quiet.evidence)


def timed_out(state: State, _table: EngineTable) -> Judgement | None:
    """The user's limit passed while it was still moving."""
    limit_s = state.asked.policy.timeout_s
    if not limit_s or state.now_s < limit_s:
        return None
    reason = f"not ready within {duration(limit_s)}; it was still moving ({state.movement.what} {duration(state.now_s - state.movement.at_s)} ago)"
    return Judgement(word=Word.TIMED_OUT, reason=reason, evidence=(Evidence(text=reason),))


def starting(state: State, _table: EngineTable) -> Judgement:
    """Alive and moving, as far as anything speaks."""
    if state.process.life is None and state.process.ended:
        return Judgement(word=Word.STARTING, reason="the last attempt ended; what restarts it is alive")
    return Judgement(word=Word.STARTING, reason="running" if state.asked.job else "")


RULES: tuple[Rule, ...] = (
    unreachable,
    over,
    looping,
    abandoned,
    owned_by_another,
    served_before,
    ready_by_log,
    locked,
    lying,
    stalled,
    timed_out,
    starting,
)
