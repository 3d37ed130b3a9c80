"""Sees health answers that mislead: 200 from a server that is dead, 503 from one that is only busy."""

import re
from bisect import bisect_left
from http import HTTPStatus
from typing import NamedTuple

from vigil.diagnosis.candidates import Evidence, Marks
from vigil.diagnosis.flow import Flow
from vigil.diagnosis.stages import SERVING
from vigil.diagnosis.standstill import BATCHES, find_standstill
from vigil.diagnosis.text import LogText

DEAD, BUSY, IDLE, PROBE, EARLY = "HEALTH001", "HEALTH002", "HEALTH003", "HEALTH004", "HEALTH005"
NEVER, DEAF = "HEALTH006", "HEALTH007"
NO_ANSWER = ("Health check failed. Server couldn't get a response",)
IMPATIENT = (
    "context deadline exceeded",
    "Client.Timeout exceeded while awaiting headers",
    "probe failed",
    "health check timed out",
    "health check failed",  # routers
    "Health check exceeded timeout",  # docker
    "is unhealthy",  # docker compose
    "failed the health check",  # Ray Serve
    "upstream timed out",  # nginx
    "Read timed out",  # whoever asks with Python
    "receive health check response for replica",
    "found to be unhealthy",  # autoheal
    "reason: Layer7 timeout",  # HAProxy
    "arked unhealthy",  # load balancers
    "marking it as unhealthy",
)
DIED = ("Engine core proc EngineCore", "MQLLMEngine is already dead")
"""A parent's word that its engine is gone, which may be all that is said of it."""
WARM_BEGIN = ("warmup started",)
WARM_END = ("warmup done", "warmup finished", "warmup completed", "fired up and ready")
_ANSWERS_OF_THE_DEAD = 2
"""One answer may have been on its way."""
_REFUSALS = 3
_WORKING_LINES = 3
"""Lines of work, before and after a refusal, that show that the server was only busy."""
_GENERATES = re.compile(r'GET /health_generate\S*(?: HTTP/[\d.]+")? 50[0-9]\b')
"""SGLang's health call that asks the engine for a token."""
_PROBES = re.compile(
    r"/(?:health\w*|ping|v1/models|ready)\b|[Ll]iveness|[Rr]eadiness|[Ss]tartup|[Hh]ealth check|ontainer \S{1,80} is unhealthy"
    r"|found to be unhealthy|Layer7 timeout|arked unhealthy|as unhealthy"
)


class Sight(NamedTuple):
    """What was seen: the rule's code, and the line that gives it away."""

    code: str
    at: int


def answers_after_death(flow: Flow, index: int) -> bool:
    """Whether the server went on answering after the failure at line `index`, and after anything that says it ended."""
    index = max(index, flow.gone_last)
    told = {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}
    later = [a for a in flow.answers if a.at > index and a.status in (told if a.health else {HTTPStatus.OK})]
    return len(later) >= _ANSWERS_OF_THE_DEAD


def find_misleading(log: LogText, flow: Flow, evidence: Evidence) -> Sight | None:
    """Return what shows that the health answers say the wrong thing of a server that did not die, or None.

    While it starts, and while it drains because it was asked to stop, a server is right to refuse.
    """
    marks = evidence.marks
    return (
        _orphan(log, flow, marks)
        or _early(log, flow)
        or _standing(log, flow, evidence)
        or _busy(log, flow, evidence)
        or _deaf(log, flow, evidence)
        or _split(log, flow, marks)
        or _impatient(log, flow, evidence)
        or _never(flow, marks)
    )


def _orphan(log: LogText, flow: Flow, marks: Marks) -> Sight | None:
    """Find 200 from a parent that has told of its engine's end and of nothing else."""
    for index in sorted(log.find_any(DIED)):
        if marks.ready < index < marks.stopped and answers_after_death(flow, index):
            return Sight(DEAD, index)
    return None


def _early(log: LogText, flow: Flow) -> Sight | None:
    """Find 200 while the warm-up holds every request back."""
    for begin in sorted(log.find_any(WARM_BEGIN)):
        end = log.first_after(WARM_END, begin) or len(log)
        if any(a.health and a.status == HTTPStatus.OK and begin < a.at < end for a in flow.answers):
            return Sight(EARLY, begin)
    return None


def _standing(log: LogText, flow: Flow, evidence: Evidence) -> Sight | None:
    """Find 200 although requests wait and no token comes."""
    found = find_standstill(log, flow, evidence)
    return None if found is None else Sight(IDLE, found)


def _split(log: LogText, flow: Flow, marks: Marks) -> Sight | None:
    """Find a health call that makes a token and fails, while the one that makes none says 200, and no work follows."""
    for index in sorted(log.find("/health")):
        if not _GENERATES.search(log.texts[index]) or not marks.ready < index < marks.stopped:
            continue
        worked = bisect_left(flow.alive, index)
        later = any(a.health and a.status == HTTPStatus.OK and a.at > index for a in flow.answers)
        if later and 0 < worked == len(flow.alive):
            return Sight(IDLE, index)
    return None


def _busy(log: LogText, flow: Flow, evidence: Evidence) -> Sight | None:
    """Find bad answers between lines that show work, or answers to requests: the last of these before the first."""
    marks = evidence.marks
    work = sorted({*flow.alive, *(a.at for a in flow.answers if not a.health and a.status == HTTPStatus.OK)})
    refused = {a.at for a in flow.answers if a.health and a.status >= HTTPStatus.INTERNAL_SERVER_ERROR}
    for bad in sorted({*log.find_any(NO_ANSWER), *refused}):
        before = bisect_left(work, bad)
        if not marks.ready < bad < marks.stopped or before == len(work) or len(work) < _WORKING_LINES:
            continue
        if before:
            return Sight(BUSY, work[before - 1])
        if bad not in refused and _goes_on(log, flow, evidence, bad):
            return Sight(BUSY, bad)
    return None


def _goes_on(log: LogText, flow: Flow, evidence: Evidence, index: int) -> bool:
    """Whether a piece of a log that does not go back to the start shows work behind a probe that was not refused."""
    works = bool(flow.alive) and flow.alive[-1] > index
    return works and not evidence.stages.at(index) and "refused" not in log.texts[index]


def _deaf(log: LogText, flow: Flow, evidence: Evidence) -> Sight | None:
    """Find SGLang's word that its engine gave its health call no answer, with no work and no good answer behind it.

    While it warms up, it may be late.
    """
    good = (answer.at for answer in flow.answers if answer.status == HTTPStatus.OK)
    well = max((evidence.marks.ready, *log.find_any(BATCHES), *good))
    for index in sorted(log.find_any(NO_ANSWER)):
        if well < index < evidence.marks.stopped:
            served = evidence.marks.ready >= 0 or evidence.stages.at(index) in {"", SERVING}
            return Sight(DEAF, index) if served else None
    return None


def _never(flow: Flow, marks: Marks) -> Sight | None:
    """Find a server that called itself ready, or served, and has answered nothing but 503 since."""
    good = [answer.at for answer in flow.answers if answer.status == HTTPStatus.OK and answer.at < marks.stopped]
    served = max((marks.ready, *good))
    if served < 0:
        return None  # it starts
    worked = max((served, *flow.alive))
    later = [answer for answer in flow.answers if worked < answer.at < marks.stopped]
    refused = [answer for answer in later if answer.health and answer.status == HTTPStatus.SERVICE_UNAVAILABLE]
    return Sight(NEVER, refused[0].at) if len(refused) == len(later) >= _REFUSALS else None


def _impatient(log: LogText, flow: Flow, evidence: Evidence) -> Sight | None:
    """Find a probe that gave up on a server that answers it, or works; what users write may say the same words."""
    marks = evidence.marks
    answered = any(a.health and a.status == HTTPStatus.OK for a in flow.answers)
    for index in sorted(log.find_any(IMPATIENT) - evidence.muted):
        ready = marks.ready >= 0 or bool(flow.alive and flow.alive[0] < index) or _goes_on(log, flow, evidence, index)
        well = answered or bool(flow.alive and flow.alive[-1] > index)
        if ready and well and marks.ready < index < marks.stopped and _PROBES.search(log.texts[index]):
            return Sight(PROBE, index)
    return None
