"""Says why an attempt ended, or where it stands: the way from its lines to an answer."""

from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

import msgspec

from vigil.diagnosis.bearing import bearing
from vigil.diagnosis.candidates import Candidate, Evidence, gather
from vigil.diagnosis.cause import Cause, End
from vigil.diagnosis.flow import Flow
from vigil.diagnosis.health import DEAD, answers_after_death, find_misleading
from vigil.diagnosis.host import by_host, decide
from vigil.diagnosis.literals import Literals
from vigil.diagnosis.patience import SlowRule, TooSlowError
from vigil.diagnosis.requests import only_failure, without_requests
from vigil.diagnosis.rules import Rule, RuleSet, how_to_read, known_rule_set, known_rules, without
from vigil.diagnosis.seen import Told
from vigil.diagnosis.select import Choice, choose, first_sign, others, outlived
from vigil.diagnosis.speculation import find_idle_speculation
from vigil.diagnosis.stuck import Stuck, find_stuck
from vigil.diagnosis.telling import Setting, tell
from vigil.diagnosis.text import LogText
from vigil.diagnosis.version import find_version
from vigil.diagnosis.wanted import searched
from vigil.engine_table import EngineTable
from vigil.facts import Line

_HEALTH_SURE, _LASTING_SURE, _SPECULATION_SURE, _REPEATED_SURE = 0.75, 0.7, 0.7, 0.6
_LONE_SURE = 0.4
_SILENT_END = (
    "the engine's process, of which only its parent tells: ask the kernel (`dmesg`) and the workers' own logs."
)
_MOVING = 2
"""Lines of work that show that a start, if it ever was one, is over."""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What one attempt's lines show.

    `candidates` are at most two others that could be the cause, best first. `stuck` is given only without a cause, for
    an attempt that is not known to have ended and never said that it serves. `repeated`: what an attempt without a
    cause, which never served, died of if the one before it looked like it. `slow`: users' rules that took too long, and
    were left out. `told`: what the host showed that bears on it.
    """

    cause: Cause | None
    candidates: tuple[Cause, ...]
    stuck: Stuck | None
    repeated: Cause | None = None
    slow: tuple[SlowRule, ...] = ()
    told: tuple[Told, ...] = ()


def examine(  # noqa: PLR0913, PLR0917 - an attempt is known by no less
    lines: Sequence[Line],
    end: End,
    table: EngineTable | None = None,
    file: str | None = None,
    version: str | None = None,
    rules: Sequence[Rule] = (),
) -> Findings:
    """Say why an attempt ended, what else it could be, and where it stands if nothing failed. Pure.

    `lines` are those of one attempt, in order; lines that hold nothing of `wanted()` may be missing. `end` is how its
    main process ended; `table` describes its engine; `file` names the log in the causes; `version` is the engine's,
    looked for in the lines where it is not given; `rules` are a user's own, which go before ours.
    """
    slow: list[SlowRule] = []
    while True:
        try:
            found = _examine(lines, end, table, file, version, rules)
        except TooSlowError as error:  # told as if that rule had never been there
            slow.append(error.slow)
            rules = without(rules, [error.slow])
        else:
            return msgspec.structs.replace(found, slow=tuple(slow)) if slow else found


def _examine(  # noqa: PLR0913, PLR0917 - as above
    lines: Sequence[Line],
    end: End,
    table: EngineTable | None,
    file: str | None,
    version: str | None,
    rules: Sequence[Rule],
) -> Findings:
    log = LogText(lines, _literals(tuple(rules)))
    end = by_host(log, end)
    engine = table.name if table is not None else None
    setting = Setting(engine, version or find_version(log, table), file)
    evidence = gather(log, engine, _rule_set(tuple(rules)))
    flow = Flow(log)
    alive = (
        one
        for one in evidence.candidates
        if not flow.survived(one.index) and (end.died or not outlived(log, evidence, one))
    )
    evidence = msgspec.structs.replace(evidence, candidates=tuple(alive))
    evidence = without_requests(log, evidence, flow, died=end.died)
    chosen = _choose(log, end, evidence, flow, setting)
    if chosen is None:
        stuck = None if end.died else _stand(lines, log, table, evidence, flow)
        up = _served(evidence, flow) or any(answer.status == HTTPStatus.OK for answer in flow.answers)
        again = () if up else evidence.repeated
        repeated = tell(log, Choice(again[-1], _REPEATED_SURE), setting) if again else None
        return Findings(cause=None, candidates=(), stuck=stuck, repeated=repeated, told=bearing(None, end))
    rest = others(evidence, chosen[0].candidate)
    choices = (*chosen, *(Choice(one, _other_sure(one)) for one in rest))[:3]
    causes = [tell(log, choice, setting) for choice in choices]
    told = bearing(causes[0], end)
    return Findings(cause=causes[0], candidates=tuple(causes[1:]), stuck=None, told=told)


def diagnose(lines: Sequence[Line], end: End, engine: str | None = None, file: str | None = None) -> Cause | None:
    """Say why an attempt ended, or None where its lines and its end show nothing.

    As `examine`, with the engine's name alone.
    """
    table = None if engine is None else EngineTable(name=engine, title=engine)
    return examine(lines, end, table, file).cause


def _choose(log: LogText, end: End, evidence: Evidence, flow: Flow, setting: Setting) -> tuple[Choice, ...] | None:
    """Return the choice, best first; with a dead server that answers, its death comes second."""
    choice = decide(choose(log, end, evidence), end)
    if choice is None or choice.candidate.rule.code == "ERR000":
        lone = only_failure(log, evidence, flow)
        choice = Choice(lone, _LONE_SURE) if lone is not None else choice
    if choice is not None and choice.candidate.index >= 0:
        died = first_sign(log, evidence, choice.candidate)
        if not end.died and answers_after_death(flow, died.line):
            why = tell(log, choice, setting)
            groups = (("why", f"{why.title} ({why.code}). {why.advice}"),)
            lying = msgspec.structs.replace(died, rule=known_rules()[DEAD], kind="", when=None, groups=groups)
            return Choice(lying, min(choice.sure, _HEALTH_SURE)), choice
        return (choice,)
    if choice is not None:
        return (choice,)
    return None if end.died else _serving(log, evidence, flow)


def _serving(log: LogText, evidence: Evidence, flow: Flow) -> tuple[Choice, ...] | None:
    """Return what is wrong with a server that runs: its health answers, its GPU, or its speculation."""
    seen = find_misleading(log, flow, evidence)
    if seen is not None:
        groups = (("why", _SILENT_END),) if seen.code == DEAD else ()
        return (Choice(Candidate(index=seen.at, rule=known_rules()[seen.code], level=0, groups=groups), _HEALTH_SURE),)
    if evidence.lasting:
        return (Choice(evidence.lasting[0], _LASTING_SURE),)
    idle = find_idle_speculation(log)
    if idle is not None:
        groups = (("found", idle.found),)
        return (
            Choice(Candidate(index=idle.at, rule=known_rules()[idle.code], level=0, groups=groups), _SPECULATION_SURE),
        )
    return None


def _stand(
    lines: Sequence[Line], log: LogText, table: EngineTable | None, evidence: Evidence, flow: Flow
) -> Stuck | None:
    if any(index < evidence.marks.stopped for index in log.find_any(how_to_read().relays)):
        return None  # it ended, though nothing says why
    return None if _served(evidence, flow) else find_stuck(lines, log, table)


def _served(evidence: Evidence, flow: Flow) -> bool:
    return evidence.marks.ready >= 0 or len(flow.alive) >= _MOVING or any(not a.health for a in flow.answers)


def _other_sure(candidate: Candidate) -> float:
    """Return how sure a further candidate is: less than even, since another line goes before it."""
    return 0.3 if candidate.level < 1 else 0.2


@lru_cache(maxsize=8)
def _rule_set(users: tuple[Rule, ...]) -> RuleSet:
    return RuleSet(known_rules().values(), users) if users else known_rule_set()


@lru_cache(maxsize=8)
def _literals(users: tuple[Rule, ...]) -> Literals:
    return Literals(searched(_rule_set(users), how_to_read()))
