"""One run through the facts: the state, the engine's table, and the choice of that table. Live and replayed runs share it."""

import msgspec

from vigil.diagnosis.seen import Seen
from vigil.engine_table import EngineTable
from vigil.engines import address, asks_speculation, detect, detect_text, served_model
from vigil.errors import UsageError
from vigil.facts import AnyFact, LogGrew, MainStarted
from vigil.plan import Plan
from vigil.screen import hide_in_command
from vigil.supervise.table import table_of
from vigil.verdict import Asked, Effect, Expectation, State, Verdict, read_expectation, report, step


class Session:
    """Takes facts in, one after another; knows the verdict."""

    def __init__(
        self, plan: Plan, slowest_quiet_s: dict[str, float] | None = None, expected_s: float | None = None
    ) -> None:
        self.plan = plan
        self.table = table_of(plan)
        self._fixed = plan.engine is not None or bool(plan.command)
        self.state = State(asked=asked_of(plan, self.table, slowest_quiet_s or {}, expected_s))

    def take(self, fact: AnyFact) -> tuple[Effect, ...]:
        """Take one fact in; return what must be done next."""
        if not self._fixed:
            self._recognise(fact)
        self.state, _, effects = step(self.state, fact, self.table)
        return effects

    @property
    def verdict(self) -> Verdict:
        """What the facts mean now."""
        return report(self.state, self.table)

    @property
    def seen(self) -> Seen | None:
        """What the host showed when the last attempt ended; None where none has, or another one serves since."""
        ended = self.state.process.ended
        return ended[-1].around.seen if ended and self.state.serving.ready_s is None else None

    def _recognise(self, fact: AnyFact) -> None:
        """Recognise the engine of a server that somebody else started: by its command line, or by its log."""
        found: EngineTable | None = None
        if isinstance(fact, MainStarted):
            found = detect(fact.argv)
        elif isinstance(fact, LogGrew):
            found = next((seen for seen in map(detect_text, (line.text for line in fact.lines)) if seen), None)
        if found is not None and found.name != "generic":
            self.table = table_of(msgspec.structs.replace(self.plan, engine=found.name))
            self._fixed = True


def asked_of(plan: Plan, engine: EngineTable, slowest_quiet_s: dict[str, float], expected_s: float | None) -> Asked:
    """Return what the plan wants of the server."""
    url = url_of(plan, engine)
    return Asked(
        name=plan.name or "",
        job=plan.job,
        ready=plan.ready or "token",
        serves=url is not None and not plan.job,
        model=plan.model or (served_model(plan.command) if plan.command else None),
        speculation=plan.speculation or (bool(plan.command) and asks_speculation(engine, plan.command)),
        expect=expected_of(plan),
        log=plan.log,
        host=plan.host,
        url=url,
        policy=plan.policy,
        time_scale=plan.time_scale,
        slowest_quiet_s=slowest_quiet_s,
        expected_s=expected_s,
    )


def expected_of(plan: Plan) -> tuple[Expectation, ...]:
    """Return what the plan expects; raise `UsageError` for what cannot be expected."""
    try:
        return tuple(map(read_expectation, plan.expect))
    except ValueError as error:
        raise UsageError(str(error)) from error


def settled(plan: Plan, engine: EngineTable, asked: Asked) -> Plan:
    """Return the plan as it is written down: without environment and secrets, with what was derived from them settled.

    Whoever takes it up later, or replays its trace, then wants the same of the server.
    """
    return msgspec.structs.replace(
        plan,
        env={},
        command=hide_in_command(plan.command),
        engine=engine.name if plan.command else plan.engine,
        url=asked.url,
        model=asked.model,
        ready=asked.ready,
        speculation=asked.speculation,
    )


def url_of(plan: Plan, engine: EngineTable) -> str | None:
    """Return where the server should answer: as the user says, else as its command line does."""
    if plan.url:
        return plan.url
    if plan.job or not plan.command:
        return None
    found = address(engine, plan.command, plan.env)
    if found is None:
        return None
    host = f"[{found.host}]" if ":" in found.host else found.host
    return f"{found.scheme}://{host}:{found.port}"
