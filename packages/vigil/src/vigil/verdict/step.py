"""The one function that turns facts into meaning (law 1): no clock, no I/O; live and replayed runs go through it alike."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from vigil import facts
from vigil.engine_table import EngineTable
from vigil.verdict import around, asking, attested, logs, movement, processes, serving, stacks
from vigil.verdict.effects import Effect, standing_orders
from vigil.verdict.judge import judge
from vigil.verdict.state import Judgement, State
from vigil.verdict.view import View
from vigil.verdict.words import Word

Handler = Callable[[State, Any, EngineTable], State]
Stepped = tuple[State, Judgement, tuple[Effect, ...]]

HANDLERS: dict[type[facts.Fact], Handler] = {
    facts.Reached: processes.on_reached,
    facts.Lost: processes.on_lost,
    facts.Ticked: processes.on_ticked,
    facts.Launched: processes.on_launched,
    facts.Refused: processes.on_refused,
    facts.MainStarted: processes.on_main_started,
    facts.MainExited: processes.on_main_exited,
    facts.RootExited: processes.on_root_exited,
    facts.ChildStarted: processes.on_child_started,
    facts.ChildExited: processes.on_child_exited,
    facts.Sampled: movement.on_sampled,
    facts.StacksSeen: stacks.on_stacks_seen,
    facts.Attested: attested.on_attested,
    facts.SpeculationMeasured: attested.on_speculation_measured,
    facts.KernelSaid: around.on_kernel_said,
    facts.RoomSeen: around.on_room_seen,
    facts.PortHeld: around.on_port_held,
    facts.GpusSeen: around.on_gpus_seen,
    facts.StopAsked: processes.on_stop_asked,
    facts.Troubled: processes.on_troubled,
    facts.LogGrew: logs.on_log_grew,
    facts.LogReset: logs.on_log_reset,
    facts.LogUnreadable: logs.on_log_unreadable,
    facts.PortOpened: serving.on_port_opened,
    facts.PortClosed: serving.on_port_closed,
    facts.ProbeAnswered: serving.on_probe_answered,
    facts.TokenAnswered: serving.on_token_answered,
    facts.MetricsSeen: serving.on_metrics_seen,
}

_STEADY = frozenset({Word.STARTING, Word.READY, Word.CRASH_LOOPING})


def step(state: State, fact: facts.AnyFact, table: EngineTable) -> Stepped:
    """Take one fact in; return the new state, what it means, and what must be done next.

    Pure: the same state, fact and table give the same answer. Time is `fact.at_s`, which never goes back.
    """
    now_s = max(state.now_s, fact.at_s)
    before = replace(state, n=state.n + 1, now_s=now_s)
    after = HANDLERS[type(fact)](before, fact, table)
    if now_s < after.next_s and table.name == after.engine and _means_the_same(before, after):
        return after, after.judged, ()
    return _judged(after, table)


def _means_the_same(before: State, after: State) -> bool:
    """Say whether nothing changed that a verdict or an order depends on, but time.

    Movement and the flow of tokens put every limit off and bring none nearer, so that a verdict that waits for limits
    still stands, and so does a loop, which only attempts make. The other verdicts may be taken back by them.
    """
    if after is before:
        return True
    if after.judged.word not in _STEADY:
        return False
    return (
        after.serving is before.serving
        and after.process is before.process
        and after.startup.phase is before.startup.phase
        and after.log.signs is before.log.signs
        and after.link is before.link
        and after.asked is before.asked
        and after.attestation is before.attestation
        and after.stop_by is before.stop_by
        and (after.movement.last is None) is (before.movement.last is None)
    )


def _judged(state: State, table: EngineTable) -> Stepped:
    """Find out what the state means, and what must be done next."""
    view = View(state, table)
    judged = judge(view)
    if judged.word in stacks.STUCK:
        judged = replace(judged, evidence=(*judged.evidence, *stacks.evidence(state)))
    reached = state.link.reached_s is not None and state.link.lost_s is None
    request = asking.ask(view) if reached else None
    look = stacks.ask(view) if reached else None
    account = attested.ask(view) if reached else ()
    state = replace(state, judged=judged, next_s=view.next_s, engine=table.name)
    if not reached:
        return state, judged, ()
    asked: tuple[Effect, ...] = ()
    if request is not None:
        state = asking.note(state, request)
        asked = (request,)
    if look is not None:
        state = stacks.note(state)
        asked = (*asked, look)
    if account:
        state = attested.note(state)
        asked = (*asked, *account)
    orders = standing_orders(state, table)
    if orders == state.orders:
        return state, judged, asked
    changed = tuple(order for index, order in enumerate(orders) if state.orders[index : index + 1] != (order,))
    return replace(state, orders=orders), judged, (*changed, *asked)
