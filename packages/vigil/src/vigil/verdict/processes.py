"""Facts about the host, the launcher and the server's processes."""

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.facts import (
    ChildExited,
    ChildStarted,
    Launched,
    Lost,
    MainExited,
    MainStarted,
    Reached,
    Refused,
    RootExited,
    StopAsked,
    Ticked,
    Troubled,
)
from vigil.verdict import attempts
from vigil.verdict.movement import moved
from vigil.verdict.serving import ready_by_weaker_sign
from vigil.verdict.state import Life, Link, Serving, State, WorkerDeath

LONG_LIVED_S = 5.0
KEPT_TROUBLES = 10
COMMAND_CHARS = 400


def on_reached(state: State, fact: Reached, table: EngineTable) -> State:
    """Take up again: what was under way over the old connection is forgotten; another boot id means that all died.

    A new observer says which port is open, and nothing of one that closed meanwhile.
    """
    link = state.link
    boot_id = fact.boot_id or link.boot_id
    rebooted = bool(link.boot_id) and boot_id != link.boot_id
    first_s = state.now_s if link.first_s is None else link.first_s
    state = replace(
        state,
        link=Link(
            boot_id=boot_id,
            first_s=first_s,
            reached_s=state.now_s,
            times_lost=link.times_lost,
            clock_s=fact.wall_s - fact.at_s,
        ),
        serving=_unasked(state.serving),
        movement=replace(state.movement, at_s=state.now_s, base=None),
        orders=(),
    )
    return on_root_exited(state, RootExited(at_s=fact.at_s, rebooted=True), table) if rebooted else state


def _unasked(serving: Serving) -> Serving:
    """Return what was learned of the address, without what was under way over the old connection."""
    return replace(
        serving,
        port=None,
        port_s=None,
        closed_s=None,
        asked_s=None,
        unanswered_s=None,
        vain=0,
        fails=0,
        fail_s=None,
        health_bad_s=None,
    )


def on_lost(state: State, fact: Lost, _table: EngineTable) -> State:
    """Remember since when nothing was heard; the server may be well."""
    link = state.link
    since_s = state.now_s if link.lost_s is None else link.lost_s
    times = link.times_lost + (link.lost_s is None)
    return replace(state, link=replace(link, lost_s=since_s, lost_why=fact.why, final=fact.final, times_lost=times))


def on_ticked(state: State, _fact: Ticked, _table: EngineTable) -> State:
    """Time passed; `step` has noted it."""
    return state


def on_launched(state: State, fact: Launched, _table: EngineTable) -> State:
    """Our launcher runs the command; the log of this start begins at a known byte."""
    return replace(
        state,
        asked=replace(state.asked, log=state.asked.log or fact.log),
        process=replace(state.process, seen=True),
        attestation=replace(state.attestation, there=fact.attester),
    )


def on_refused(state: State, fact: Refused, _table: EngineTable) -> State:
    """Nothing was started, and nothing will be."""
    return replace(state, process=replace(state.process, refused=fact, root_fact=state.n))


def on_main_started(state: State, fact: MainStarted, table: EngineTable) -> State:
    """Tell what a main process is: one that we know (after a reconnect), one that the log announced, or a new attempt."""
    life = state.process.life
    command = attempts.shape(" ".join(fact.argv))[:COMMAND_CHARS]
    if life is not None and (life.pid is None or (life.pid == fact.pid and life.start_ticks == fact.start_ticks)):
        named = replace(
            life,
            pid=fact.pid,
            start_ticks=fact.start_ticks,
            sure=fact.sure or life.sure,
            wrapped=fact.wrapped,
            command=command or life.command,
        )
        return replace(state, process=replace(state.process, life=named, seen=True))
    state = attempts.end(state, table)
    before_s = state.process.ended[-1].ended_s if state.process.ended else None
    new = Life(
        n=attempts.next_number(state),
        started_s=max(before_s or 0.0, round(state.now_s - fact.up_s, 3)),  # seen late where the line took its time
        pid=fact.pid,
        start_ticks=fact.start_ticks,
        sure=fact.sure,
        wrapped=fact.wrapped,
        late=fact.seen_late,
        command=command,
    )
    if fact.seen_late and new.n == 1:
        return attempts.find(state, replace(new, opened=True), table)
    if state.log.old:  # what stood in the log before this process began is of another life
        state = replace(state, log=replace(state.log, chunks=(), old=False))
    return ready_by_weaker_sign(attempts.begin(state, new, table), table)


def on_main_exited(state: State, fact: MainExited, table: EngineTable) -> State:
    """End the attempt."""
    life = state.process.life
    if life is None or (life.pid is not None and life.pid != fact.pid):
        return state
    return attempts.end(state, table, code=fact.code, signal=fact.signal, oom_killed=fact.oom_killed)


def on_root_exited(state: State, fact: RootExited, table: EngineTable) -> State:
    """Nothing can start another attempt any more."""
    if state.process.root is not None:
        return state
    state = replace(state, stop_by=fact.asked_by or state.stop_by)
    if state.process.life is not None:
        state = attempts.end(state, table, code=fact.code, signal=fact.signal, oom_killed=fact.oom_killed)
    elif not fact.rebooted:
        state = attempts.learn_exit(state, table, fact.code, fact.signal)
    return replace(state, process=replace(state.process, root=fact, root_fact=state.n, seen=True))


def on_child_started(state: State, fact: ChildStarted, _table: EngineTable) -> State:
    """Count a new process of the tree as progress (compilers of kernels are such children)."""
    return moved(state, f"process {fact.pid} ({fact.name}) started")


def on_child_exited(state: State, fact: ChildExited, _table: EngineTable) -> State:
    """Note a worker's death, which may end the service without a word; others come and go."""
    state = _shed(state, fact)
    long_lived = fact.lived_s >= LONG_LIVED_S * state.asked.time_scale
    matters = fact.worker or (state.serving.ready_s is not None and long_lived)
    earlier = state.process.worker
    if not matters or (earlier is not None and earlier.known and not fact.worker):
        return state
    named = any(line.what == "oom_kill" and line.pid == fact.pid for _, line in state.around.kernel)
    death = WorkerDeath(
        at_s=state.now_s,
        pid=fact.pid,
        name=fact.name,
        fact=state.n,
        known=fact.worker,
        oom_killed=fact.oom_killed or named,
    )
    return replace(state, process=replace(state.process, worker=death))


def _shed(state: State, fact: ChildExited) -> State:
    """Note that what wrote the life's banner may be gone: only a child that was there then can have written it."""
    life = state.process.life
    if life is None or life.sure or life.shed:
        return state
    if life.banner_s is not None and state.now_s - fact.lived_s > life.banner_s:
        return state  # a compiler, a download: it came after the banner
    return replace(state, process=replace(state.process, life=replace(life, shed=True)))


def on_stop_asked(state: State, fact: StopAsked, _table: EngineTable) -> State:
    """Note that what ends from here on was asked for."""
    return replace(state, stop_by=fact.by, stop_s=state.now_s if state.stop_s is None else state.stop_s)


def on_troubled(state: State, fact: Troubled, _table: EngineTable) -> State:
    """Keep our own trouble as a warning, each once."""
    known = fact.what in state.troubles
    return state if known else replace(state, troubles=(*state.troubles, fact.what)[-KEPT_TROUBLES:])
