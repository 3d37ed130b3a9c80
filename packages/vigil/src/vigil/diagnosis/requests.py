"""Says whether a failure in a server that serves was one request's: the server is none the worse for it.

A request fails in the process that answers over HTTP (a bad prompt, a client that went away, a template, a parser of tool
calls, a page of metrics). Who wrote it says so: vLLM's `APIServer`, or frames of the web server and of what prepares a
request, with none of a loop that computes. An engine's end is told in other words behind it.
"""

import re
from functools import cache

import msgspec

from vigil.diagnosis.candidates import Candidate, Evidence
from vigil.diagnosis.flow import Flow
from vigil.diagnosis.reader import frames_above
from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.stages import SERVING
from vigil.diagnosis.text import LogText

_ANSWERS_HTTP = "APIServer"
_COMPUTES = re.compile(
    r"Engine|Worker|raylet|\b(?:core|engine|async_llm\w*|worker\w*|\w*proc\w*|\w*executor|\w*runner|scheduler)\.py:\d+\]"
)
"""vLLM's parts that compute, in the prefix of a line: by their process, before 0.10 by their file."""
_JUST_BEFORE = 8
"""Lines before a traceback in which its request may be answered."""


@cache
def _frames_of_one() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what frames that work on one request match, and those of whoever works for all."""
    served = how_to_read().served
    return re.compile(served.request), re.compile(f"{served.loop}|{served.first}|{served.all}")


def without_requests(log: LogText, evidence: Evidence, flow: Flow, *, died: bool) -> Evidence:
    """Leave out the candidates that a single request ran into, where the server went on or something else ended it."""
    ones = [one for one in evidence.candidates if _by_one(log, one)]
    others = any(one not in ones and not one.rule.aftermath for one in evidence.candidates)
    left = tuple(
        one
        for one in evidence.candidates
        if not (one in ones and (others or _went_on(log, evidence, flow, one, died=died)))
        and not _passed(log, evidence, flow, one)
    )
    return msgspec.structs.replace(evidence, candidates=left)


def _went_on(log: LogText, evidence: Evidence, flow: Flow, one: Candidate, *, died: bool) -> bool:
    """Whether the server did work or answered behind a request's failure, before anybody told of an end.

    A log that had come up and ends there tells of no end either, unless the process is known to have died, or each answer
    since then is an error of the server's own.
    """
    if _told_with(log, one):
        return False
    end = _end_after(log, one.index)
    if flow.works_after(one.index, end):
        return True
    still = end is None and not died and evidence.stages.at(_begin(one)) == SERVING
    return still and not flow.refused_after(_begin(one) - _JUST_BEFORE)


def _passed(log: LogText, evidence: Evidence, flow: Flow, one: Candidate) -> bool:
    """Whether nobody died of what no rule knows: nobody who computes wrote it, and it worked or answered on before any end."""
    line = log.read(_begin(one))
    if not one.rule.generic or line.rank or _COMPUTES.search(log.texts[_begin(one)]) or _told_with(log, one):
        return False
    if one.head is None and _ANSWERS_HTTP not in line.process:
        return False  # whose traceback it ends is not known
    if evidence.stages.at(_begin(one)) != SERVING or _frames_of_one()[1].search(_frames(log, one)):
        return False
    return flow.works_after(one.index, _end_after(log, one.index), health=False)


def _begin(one: Candidate) -> int:
    return one.index if one.head is None else one.head


def _frames(log: LogText, one: Candidate) -> str:
    return "" if one.head is None else "\n".join(frames_above(log, one.index, one.head))


def _by_one(log: LogText, one: Candidate) -> bool:
    """Whether the process that answers over HTTP raised it while it worked on a request."""
    if one.head is None:
        return False
    request, everybody = _frames_of_one()
    frames = _frames(log, one)
    if everybody.search(frames):
        return False
    return _ANSWERS_HTTP in log.read(one.head).process or request.search(frames) is not None


def _told_with(log: LogText, one: Candidate) -> bool:
    """Whether somebody tells of an end with the failure: the logger says it before a traceback."""
    told = _end_after(log, max(_begin(one) - 2, -1))
    return told is not None and told <= one.index


def _end_after(log: LogText, index: int) -> int | None:
    """Return the first line behind another in which a parent, or the server itself, tells of an end."""
    reading = how_to_read()
    return log.first_after((*reading.relays, *reading.gone), index)


def only_failure(log: LogText, evidence: Evidence, flow: Flow) -> Candidate | None:
    """Return the first of the tracebacks that were told for a request or a task, where the log shows nothing else.

    In a piece of a log that never shows its server at work, the request that failed is what it was cut out for; a task of
    the event loop counts where somebody tells of the end behind it.
    """
    if evidence.marks.ready >= 0 or flow.works_after(-1):
        return None
    spare = (one for one in evidence.spare if one.index < evidence.marks.stopped)
    one = next((one for one in spare if _by_one(log, one) or _end_after(log, one.index) is not None), None)
    if one is None or one.kind or not (_by_one(log, one) and one.rule.kind_serving):
        return one
    return msgspec.structs.replace(one, kind=one.rule.kind_serving)
