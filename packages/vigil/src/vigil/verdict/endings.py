"""Verdicts on what has ended: stopped, finished, crashed, looping, given up, out of reach."""

from msgspec.structs import replace

from vigil.diagnosis.cause import Cause
from vigil.facts import Refused
from vigil.screen import duration
from vigil.verdict import attempts
from vigil.verdict.state import Judgement, Life, State
from vigil.verdict.view import View
from vigil.verdict.words import Evidence, Word

SHOWN_ATTEMPTS = 5


def unreachable(view: View) -> Judgement | None:
    """Say that the connection is gone for good, or for longer than we wait."""
    link, judged = view.state.link, view.state.judged
    if link.lost_s is None:
        return None
    if not link.final and not view.passed(link.lost_s + view.policy.unreachable_after_s):
        return replace(judged, reason=f"connection lost ({link.lost_why}), trying again; last known: {judged.word}")
    if judged.word is Word.UNREACHABLE:
        return judged
    known = f"last known: {judged.word}, {duration(max(0.0, link.lost_s))} after the start of the watching"
    reason = f"{view.state.asked.host} cannot be reached: {link.lost_why}; {known}"
    return Judgement(word=Word.UNREACHABLE, reason=reason, evidence=(Evidence(text=link.lost_why),))


def refused(view: View) -> Judgement | None:
    """Say that nothing was started, since it could not have come up."""
    said = view.state.process.refused
    if said is None:
        return None
    cause = _foretold(said) if said.what == "check" else replace(_REFUSALS[said.what], text=said.text)
    seen = (Evidence(text=said.text, fact=view.state.process.root_fact),)
    reason = f"{said.text}; nothing was started"
    return Judgement(word=Word.REFUSED, reason=reason, cause=cause, evidence=seen)


def _foretold(said: Refused) -> Cause:
    """Return what the command would have died of, as the look ahead found it."""
    return Cause(
        code=said.code,
        kind=said.cause_kind,
        title=said.title,
        text=said.text,
        advice=said.advice,
        fingerprint=said.code,
        sure=1.0,
        retry=False,
    )


_REFUSALS = {
    "port": Cause(
        code="PORT001",
        kind="port_in_use",
        title="The port is taken",
        text="",
        advice="Stop the program that holds the port, or give this server another one.",
        fingerprint="port taken before the start",
        sure=1.0,
        retry=False,
    ),
    "command": Cause(
        code="CMD001",
        kind="missing_dependency",
        title="The command cannot be run",
        text="",
        advice="Give the full path of an installed program, or activate the environment that holds it.",
        fingerprint="command cannot be run",
        sure=1.0,
        retry=False,
    ),
}


def over(view: View) -> Judgement | None:
    """Everything has ended."""
    state = view.state
    root = state.process.root
    if root is None:
        return None
    how = Evidence(text=_how(root.code, root.signal, oom_killed=root.oom_killed), fact=state.process.root_fact)
    evidence = (how, *_leftovers(state))
    if root.rebooted:
        reason = "the host was rebooted: nothing of that start is left"
        how = Evidence(text="another boot id", fact=state.process.root_fact)
        return Judgement(word=Word.CRASHED, reason=reason, cause=_REBOOTED, evidence=(how,))
    if state.stop_by is not None:
        return Judgement(word=Word.STOPPED, reason=f"stopped by {state.stop_by}", evidence=evidence)
    if state.asked.job and root.code == 0:
        return Judgement(word=Word.FINISHED, reason="the job ended by itself with exit code 0", evidence=evidence)
    looped = looping(view)
    if looped is not None:
        return replace(looped, evidence=(how, *looped.evidence))
    last = state.process.ended[-1] if state.process.ended else None
    return _crashed(state, last, evidence)


def _crashed(state: State, last: Life | None, evidence: tuple[Evidence, ...]) -> Judgement:
    if last is None:
        return Judgement(word=Word.CRASHED, reason="it ended before anything of it was seen", evidence=evidence)
    reason = f"{_end_of(last)} {_when(last)}"
    if last.code == 0 and not state.asked.job:
        reason += " (exit code 0 is a crash here: nobody asked it to end)"
    first = _worker_before(state, last)
    if first is not None:
        evidence = (*evidence, first)
        reason += f"; {first.text}" if last.why is None else ""
    return Judgement(word=Word.CRASHED, reason=reason, cause=last.why, evidence=(*evidence, *last.told))


def _worker_before(state: State, last: Life) -> Evidence | None:
    """Return the death of an engine's worker that the main process followed: vLLM exits 0 after it, without a word on why."""
    worker = state.process.worker
    if worker is None or not worker.known or last.ended_s is None or worker.at_s > last.ended_s:
        return None
    text = f"its process {worker.pid} ({worker.name}) had ended {duration(last.ended_s - worker.at_s)} before"
    return Evidence(text=text, fact=worker.fact)


def _when(life: Life) -> str:
    ended_s = life.ended_s or 0.0
    if life.ready_s is not None:
        return f"{duration(ended_s - life.ready_s)} after it was ready"
    return f"after {duration(ended_s - life.started_s)}, in phase {life.phase}"


def _leftovers(state: State) -> tuple[Evidence, ...]:
    root = state.process.root
    if root is None or not root.left:
        return ()
    text = f"{root.left} processes of its tree were left behind and were ended"
    return (Evidence(text=text, fact=state.process.root_fact),)


def _end_of(life: Life) -> str:
    if life.pid is None:
        return "its log says that another life began" if life.by_log else "another process answers in its place"
    return _how(life.code, life.signal, oom_killed=life.oom_killed)


def _how(code: int | None, signal: int | None, *, oom_killed: bool) -> str:
    if signal is not None:
        return f"killed by signal {signal}" + (" (the kernel's OOM killer)" if oom_killed else "")
    return f"exit code {code}" if code is not None else "its process ended (the exit code is known to its parent only)"


_REBOOTED = Cause(
    code="HOST001",
    kind="other",
    title="The host was rebooted",
    text="the boot id of the host changed",
    advice="Find out why the host rebooted (`last -x`, `journalctl -b -1 -e`), then start the server again.",
    fingerprint="host rebooted",
    sure=1.0,
    retry=True,
)


def looping(view: View) -> Judgement | None:
    """Name attempts that end alike (law 6). A start that is ready now is no loop; being stopped is none either."""
    state = view.state
    ended = state.process.ended
    if not ended or state.serving.ready_s is not None or state.stop_by is not None:
        return None
    found = attempts.loop(ended, view.policy, job=state.asked.job)
    if found is None:
        return None
    alike, retry = found
    last = ended[-1]
    so = f"{alike} attempts in a row ended alike" if retry else "a retry cannot mend that"
    why = f": {last.why.title or last.why.kind}" if last.why else ""
    reason = f"attempt {last.n} ended like {alike - 1} before it{why} ({_end_of(last)}, {_when(last)}); {so}"
    seen = tuple(
        Evidence(text=f"attempt {life.n} (pid {life.pid or 'unknown'}): {_when(life)}", fact=life.ended_fact)
        for life in ended[-alike:]
    )
    evidence = (*seen[-SHOWN_ATTEMPTS:], *last.told)
    return Judgement(word=Word.CRASH_LOOPING, reason=reason, cause=last.why, evidence=evidence)


def abandoned(view: View) -> Judgement | None:
    """Say that the last attempt was the end: what could start another is there or may come, and nothing happens."""
    state = view.state
    process = state.process
    if process.life is not None or not process.ended:
        return None
    last = process.ended[-1]
    since_s = max(last.ended_s or 0.0, state.movement.at_s)
    patience_s = view.policy.restart_patience_s if last.wrapped else view.policy.gone_patience_s
    if not view.passed(since_s + patience_s):
        return None
    waited = f"no new attempt for {duration(view.now_s - (last.ended_s or 0.0))}"
    evidence = (Evidence(text=waited, fact=last.ended_fact),)
    if state.stop_by is not None:
        return Judgement(word=Word.STOPPED, reason=f"stopped by {state.stop_by}", evidence=evidence)
    return _crashed(state, last, evidence)


def gave_up(view: View) -> Judgement | None:
    """Only a log is to be seen, its last word is that the engine gives up, and nothing came after it."""
    state = view.state
    signs, life = state.log.signs, state.process.life
    seen = state.process.seen or (life is not None and life.pid is not None)
    if seen or signs.fatal_s is None or state.serving.port is not None or state.serving.ready_s is not None:
        return None
    patience_s = view.policy.gone_patience_s if signs.fatal_old else view.policy.fail_patience_s
    if not view.passed(max(signs.fatal_s, state.log.grew_s or 0.0) + patience_s):
        return None
    known = life or Life(n=attempts.next_number(state), started_s=state.now_s)
    cause = attempts.why(state, known, state.log.chunks, view.table)
    when = " before we looked" if signs.fatal_old else ""
    reason = f"its log says that it gave up{when}; no process was to be seen"
    return Judgement(
        word=Word.CRASHED, reason=reason, cause=cause, evidence=(Evidence(text=reason, fact=signs.fatal_fact),)
    )


def stopping(view: View) -> Judgement | None:
    """Somebody asked for a stop: what it says while it goes down is no verdict, for as long as a stop may take."""
    state = view.state
    if state.stop_by is None or state.stop_s is None or state.process.life is None:
        return None
    if view.passed(state.stop_s + view.policy.restart_patience_s):
        return None
    reason = f"{state.stop_by} asked it to stop"
    served = state.serving.ready_s is not None
    return Judgement(word=Word.READY if served else Word.STARTING, reason=reason, level=state.serving.level)
