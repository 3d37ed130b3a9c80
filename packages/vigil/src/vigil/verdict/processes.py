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
    RootExited,
    Sampled,
    StopAsked,
    Ticked,
    Troubled,
)
from vigil.verdict import attempts
from vigil.verdict.state import Life, Movement, State, WorkerDeath

LONG_LIVED_S = 5.0


def on_reached(state: State, fact: Reached, table: EngineTable) -> State:
    """Take up again: what was under way over the old connection is forgotten; another boot id means that all died."""
    link = state.link
    rebooted = bool(link.boot_id and fact.boot_id and fact.boot_id != link.boot_id)
    state = replace(
        state,
        link=replace(
            link, boot_id=fact.boot_id or link.boot_id, reached_s=state.now_s, lost_s=None, lost_why="", final=False
        ),
        serving=replace(state.serving, asked_s=None, fails=0, fail_s=None, health_bad_s=None),
        movement=replace(state.movement, at_s=state.now_s) if link.lost_s is not None else state.movement,
        orders=(),
    )
    return on_root_exited(state, RootExited(at_s=fact.at_s, rebooted=True), table) if rebooted else state


def on_lost(state: State, fact: Lost, _table: EngineTable) -> State:
    """Remember since when nothing was heard; the server may be well."""
    link = state.link
    since = state.now_s if link.lost_s is None else link.lost_s
    times = link.times_lost + (link.lost_s is None)
    return replace(state, link=replace(link, lost_s=since, lost_why=fact.why, final=fact.final, times_lost=times))


def on_ticked(state: State, _fact: Ticked, _table: EngineTable) -> State:
    """Time passed; `step` has noted it."""
    return state


def on_launched(state: State, fact: Launched, _table: EngineTable) -> State:
    """Our launcher runs the command; the log of this start begins at a known byte."""
    return replace(
        state,
        asked=replace(state.asked, log=state.asked.log or fact.log),
        process=replace(state.process, seen=True),
    )


def on_main_started(state: State, fact: MainStarted, table: EngineTable) -> State:
    """A main process was seen: the one that we know (after a reconnect), the one the log announced, or a new attempt."""
    life = state.process.life
    same = life is not None and life.pid == fact.pid and life.start_ticks == fact.start_ticks
    if life is not None and (same or (life.pid is None and life.by_log and not fact.seen_late)):
        named = replace(
            life, pid=fact.pid, start_ticks=fact.start_ticks, sure=fact.sure or life.sure, wrapped=fact.wrapped
        )
        return replace(state, process=replace(state.process, life=named, seen=True))
    state = attempts.end(state, table)
    number = attempts.next_number(state)
    new = Life(
        n=number,
        started_s=state.now_s,
        pid=fact.pid,
        start_ticks=fact.start_ticks,
        wrapped=fact.wrapped,
        sure=fact.sure,
    )
    history = state.log.chunks if fact.seen_late and number == 1 else ()
    spans_before = state.startup
    state = attempts.begin(state, new, attempts.first_phase(table))
    if not history:
        return state
    opened = replace(new, opened=True)
    return replace(
        state, log=replace(state.log, chunks=history), startup=spans_before, process=replace(state.process, life=opened)
    )


def on_main_exited(state: State, fact: MainExited, table: EngineTable) -> State:
    """The attempt ended."""
    life = state.process.life
    if life is None or (life.pid is not None and life.pid != fact.pid):
        return state
    return attempts.end(state, table, code=fact.code, signal=fact.signal, oom_killed=fact.oom_killed)


def on_root_exited(state: State, fact: RootExited, table: EngineTable) -> State:
    """Nothing can start another attempt any more."""
    if state.process.root is not None:
        return state
    state = replace(state, stop_by=fact.asked_by or state.stop_by)
    state = attempts.end(state, table, code=fact.code, signal=fact.signal, oom_killed=fact.oom_killed)
    return replace(state, process=replace(state.process, root=fact, root_fact=state.n, seen=True))


def on_child_started(state: State, fact: ChildStarted, _table: EngineTable) -> State:
    """A new process of the tree is progress (compilers of kernels are such children)."""
    return moved(state, f"process {fact.pid} ({fact.name}) started")


def on_child_exited(state: State, fact: ChildExited, _table: EngineTable) -> State:
    """A worker's death may end the service without a word; others come and go."""
    matters = fact.worker or (
        state.serving.ready_s is not None and fact.lived_s >= LONG_LIVED_S * state.asked.time_scale
    )
    if not matters:
        return state
    death = WorkerDeath(
        at_s=state.now_s, pid=fact.pid, name=fact.name, fact=state.n, known=fact.worker, oom_killed=fact.oom_killed
    )
    return replace(state, process=replace(state.process, worker=death))


def on_stop_asked(state: State, fact: StopAsked, _table: EngineTable) -> State:
    """What ends from here on was asked for."""
    return replace(state, stop_by=fact.by)


def on_troubled(state: State, fact: Troubled, _table: EngineTable) -> State:
    """Keep our own trouble as a warning, each once."""
    return state if fact.what in state.troubles else replace(state, troubles=(*state.troubles, fact.what)[-10:])


def on_sampled(state: State, fact: Sampled, _table: EngineTable) -> State:
    """Bytes or memory that moved are progress; CPU alone is not (law 7)."""
    movement = state.movement
    state = replace(state, movement=replace(movement, last=fact, before=movement.last, at=movement.at or fact))
    base = movement.at
    if base is None:
        return state
    policy = state.asked.policy
    if abs(fact.io_bytes - base.io_bytes) >= policy.io_moved_bytes:
        return moved(state, "bytes were read or written")
    if abs(fact.rss_bytes - base.rss_bytes) >= policy.memory_moved_bytes:
        return moved(state, "memory of the processes changed")
    if abs((fact.gpu_bytes or 0) - (base.gpu_bytes or 0)) >= policy.memory_moved_bytes:
        return moved(state, "GPU memory changed")
    return state


def moved(state: State, what: str) -> State:
    """Note progress, and how long this phase had been quiet before it."""
    movement = state.movement
    quiet_s = state.now_s - movement.at_s
    phase = state.startup.phase.value
    startup = state.startup
    if quiet_s > startup.quiet_s.get(phase, 1.0):
        startup = replace(startup, quiet_s={**startup.quiet_s, phase: quiet_s})
    new = Movement(at_s=state.now_s, what=what, at=movement.last, last=movement.last, before=movement.before)
    return replace(state, movement=new, startup=startup)
