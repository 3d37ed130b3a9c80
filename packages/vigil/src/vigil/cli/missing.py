"""What was not to be seen so far, in words: why a watch may wait for nothing."""

from vigil.plan import Plan
from vigil.verdict import State, Verdict, Word

LOOKED_AFTER_S = 0.4  # by then the observer has looked at everything once
COMMAND_SHOWN = 120
UNSEEN = frozenset({Word.STARTING, Word.TIMED_OUT, Word.STALLED})


def missing(plan: Plan, state: State, elapsed_s: float) -> tuple[str, ...]:
    """Return what the plan names and nobody has seen yet; nothing before there was time to look."""
    link, process = state.link, state.process
    if link.reached_s is None or link.lost_s is not None or elapsed_s - link.reached_s < LOOKED_AFTER_S:
        return ()
    found = []
    if plan.match is not None and not process.seen:
        found.append(f"no process has {plan.match!r} in its command line yet")
    if plan.log is not None and state.log.missing and not state.log.seen:
        found.append(f"the log {plan.log} is not there yet")
    nobody = process.life is None and state.serving.port is None
    silent = state.serving.models is not None and state.serving.models.status is None
    if plan.url is not None and not plan.command and nobody and silent:
        found.append(f"nothing answers at {plan.url} yet")
    return tuple(found)


def told(verdict: Verdict, plan: Plan, state: State, elapsed_s: float) -> tuple[str, ...]:
    """Return the same as warnings of a verdict that says no more than that it waited."""
    found = missing(plan, state, elapsed_s) if verdict.word in UNSEEN else ()
    life = state.process.life or (state.process.ended[-1] if state.process.ended else None)
    if plan.match is None or life is None or life.pid is None:
        return found
    return (*found, f"--match {plan.match!r} found pid {life.pid}: {life.command[:COMMAND_SHOWN]}")


def unknown_address(plan: Plan, state: State) -> str | None:
    """Say that a start can never be proven ready, where nobody knows at which address."""
    if not plan.command or plan.job or state.asked.serves or plan.ready == "log":
        return None
    return (
        "it is not known where this command will answer, so it can never be called ready: "
        "give --url http://HOST:PORT (or --ready log; for a job use vigil run)"
    )
