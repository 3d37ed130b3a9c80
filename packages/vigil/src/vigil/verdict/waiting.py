"""Verdicts on a start-up that goes on: stuck, out of time, or on its way (law 7: slow is not stuck)."""

from vigil.screen import duration
from vigil.verdict.state import Judgement, State
from vigil.verdict.view import View
from vigil.verdict.words import Evidence, Word

JOB_PATIENCE = 2.0
"""A job without earlier runs may be quiet for this many times `silent_s`, ten minutes: as long as NCCL's own watchdog waits."""


def limit_s(view: View) -> float:
    """Return how long the present phase may be quiet, in seconds.

    Three times its longest quiet in earlier starts or earlier in this one; without earlier starts its default at least.
    """
    state, policy = view.state, view.policy
    phase = state.startup.phase
    here_s = state.startup.quiet_s.get(phase.value, 0.0)
    known_s = state.asked.slowest_quiet_s.get(phase.value)
    if known_s is not None:
        return max(policy.stall_floor_s, policy.stall_factor * max(known_s, here_s))
    default_s = view.table.silent_s.get(phase)
    quiet_s = policy.silent_s if default_s is None else default_s * state.asked.time_scale
    if state.asked.job:
        quiet_s = JOB_PATIENCE * policy.silent_s
    return max(quiet_s, policy.stall_factor * here_s)


def stalled(view: View) -> Judgement | None:
    """No progress for longer than this phase may take, as far as anything of it can be seen."""
    state = view.state
    if state.movement.last is None and (not state.log.seen or state.log.signs.error):
        return None
    if state.process.life is None and state.process.ended:
        return None
    worker = state.process.worker
    allowed_s = limit_s(view)
    died = ""
    if worker is not None and worker.known:
        allowed_s = min(allowed_s, view.policy.stall_floor_s)
        died = f"its process {worker.pid} ({worker.name}) died; "
    since_s = state.movement.at_s if not died or worker is None else max(state.movement.at_s, worker.at_s)
    if not view.passed(since_s + allowed_s):
        return None
    quiet_s = view.now_s - state.movement.at_s
    spins = _spinning(state)
    how = "spinning without progress" if spins else "quiet"
    allowed = f"{duration(allowed_s)} allowed"
    reason = f"{died}stuck in {state.startup.phase} ({how} for {duration(quiet_s)}, {allowed})"
    evidence = tuple(Evidence(text=text) for text in _seen(state, quiet_s, spins=spins))
    if died and worker is not None:
        evidence = (Evidence(text=f"process {worker.pid} ({worker.name}) died", fact=worker.fact), *evidence)
    return Judgement(word=Word.STALLED, reason=reason, evidence=evidence)


def _spinning(state: State) -> bool:
    """Say whether cores were busy over the last two samples."""
    now, before = state.movement.last, state.movement.before
    if now is None or before is None or now.at_s <= before.at_s:
        return False
    return (now.cpu_s - before.cpu_s) / (now.at_s - before.at_s) >= state.asked.policy.spinning_cpu


def _seen(state: State, quiet_s: float, *, spins: bool) -> list[str]:
    """Return what could be seen, and what could not."""
    log, last = state.log, state.movement.last
    if log.signs.error:
        texts = [f"log: cannot be seen ({log.signs.error})"]
    elif log.grew_s is not None:
        texts = [f"log: no new line for {duration(state.now_s - log.grew_s)} ({log.size} bytes)"]
    else:
        texts = [f"log: no new line since we look ({log.size} bytes)" if log.seen else "log: none to be seen"]
    if last is None:
        return [*texts, "processes: not to be seen from here"]
    gpu = "not to be seen" if last.gpu_bytes is None else f"unchanged ({last.gpu_bytes >> 20} MiB)"
    return [
        *texts,
        f"disk and pipes: nothing moved for {duration(quiet_s)}",
        f"memory of {last.processes} processes: unchanged ({last.rss_bytes >> 20} MiB)",
        f"GPU memory: {gpu}",
        "CPU: busy, which alone is not progress (spinning)" if spins else "CPU: idle",
    ]


def timed_out(view: View) -> Judgement | None:
    """Say that the user's limit passed while it was still moving; 0 is no limit.

    Counted from when we could first look, or from the end of the last life that was ready.
    """
    state = view.state
    allowed_s = view.policy.timeout_s
    since_s = max(state.waiting_s, state.link.first_s or 0.0)
    if not allowed_s or not view.passed(since_s + allowed_s):
        return None
    ago = duration(view.now_s - state.movement.at_s)
    reason = f"not ready within {duration(allowed_s)}; its last sign of progress: {state.movement.what}, {ago} ago"
    return Judgement(word=Word.TIMED_OUT, reason=reason, evidence=(Evidence(text=reason),))


def starting(view: View) -> Judgement:
    """Alive and moving, as far as anything speaks."""
    state = view.state
    asked, ended = state.asked, state.process.ended
    reason = ""
    if state.process.life is None and ended:
        why = f" ({ended[-1].why.title or ended[-1].why.kind})" if ended[-1].why else ""
        reason = f"attempt {ended[-1].n} ended{why}; waiting for what starts it again"
    elif asked.job:
        reason = "running"
    elif not asked.serves and asked.ready != "log":
        reason = "no address is known: give --url, or --ready log"
    elif asked.ready == "http" and state.serving.health is not None and state.serving.health.status is not None:
        reason = f"its health path {view.table.health_path} answers {state.serving.health.status} (--health-path gives another)"
    elif asked.ready == "log" and not view.table.ready_lines:
        reason = "this engine has no ready line: --ready log cannot come true"
    return Judgement(word=Word.STARTING, reason=reason)
