"""The one function that turns facts into meaning (law 1): no clock, no I/O; live and replayed runs go through it alike."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from vigil import facts
from vigil.engine_table import EngineTable
from vigil.verdict import logs, processes, serving
from vigil.verdict.effects import AskToken, Effect, standing_orders
from vigil.verdict.judge import judge
from vigil.verdict.state import Judgement, State

Handler = Callable[[State, Any, EngineTable], State]

HANDLERS: dict[type[facts.Fact], Handler] = {
    facts.Reached: processes.on_reached,
    facts.Lost: processes.on_lost,
    facts.Ticked: processes.on_ticked,
    facts.Launched: processes.on_launched,
    facts.MainStarted: processes.on_main_started,
    facts.MainExited: processes.on_main_exited,
    facts.RootExited: processes.on_root_exited,
    facts.ChildStarted: processes.on_child_started,
    facts.ChildExited: processes.on_child_exited,
    facts.Sampled: processes.on_sampled,
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


def step(state: State, fact: facts.AnyFact, table: EngineTable) -> tuple[State, Judgement, tuple[Effect, ...]]:
    """Take one fact in; return the new state, what it means, and what must be done next.

    Pure: the same state, fact and table give the same answer. Time is `fact.at_s`, which never goes back.
    """
    state = replace(state, n=state.n + 1, now_s=max(state.now_s, fact.at_s))
    state = HANDLERS[type(fact)](state, fact, table)
    judged = judge(state, table)
    if judged is not state.judged:
        state = replace(state, judged=judged)
    if state.link.reached_s is None or state.link.lost_s is not None:
        return state, judged, ()
    return _with_effects(state, judged, table)


def _with_effects(state: State, judged: Judgement, table: EngineTable) -> tuple[State, Judgement, tuple[Effect, ...]]:
    effects: tuple[Effect, ...] = ()
    orders = standing_orders(state, table)
    if orders != state.orders:
        effects = tuple(order for index, order in enumerate(orders) if state.orders[index : index + 1] != (order,))
        state = replace(state, orders=orders)
    request: AskToken | None = serving.ask(state)
    if request is not None:
        asked_s = state.now_s + request.delay_s
        first_s = state.serving.asked_ever_s if state.serving.asked_ever_s is not None else asked_s
        state = replace(state, serving=replace(state.serving, asked_s=asked_s, asked_ever_s=first_s))
        effects = (*effects, request)
    return state, judged, effects
