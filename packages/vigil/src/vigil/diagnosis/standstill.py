"""Sees a server that answers and makes no tokens, in what its lines of work say, and in their end."""

import re
from bisect import bisect_right

from vigil.diagnosis.candidates import Evidence
from vigil.diagnosis.flow import ANSWERS, THROUGHPUT, Flow
from vigil.diagnosis.text import LogText

BLOCKED = ("No available shared memory broadcast block found in", "No available block found in")
"""vLLM from 0.10 on, and before: a minute in which the workers took nothing from the engine, or gave it nothing."""
WAITED = ("APITimeoutError", "Request timed out", "504 Gateway", "upstream timed out", "Read timed out")
"""What clients and proxies say beside a server's own lines, of a request that was never answered."""
BATCHES = ("Prefill batch", "Decode batch")
"""What SGLang prints of its work, health calls that ask for a token among it."""
_STANDS = re.compile(
    r"Avg prompt throughput: 0(?:\.0*)? .*?Avg generation throughput: 0(?:\.0*)? .*?"
    r"Running: (?P<running>\d+) reqs.*?(?:Waiting|Pending): (?P<waiting>\d+) reqs"
    r"|Decode batch.*?gen throughput \(token/s\): 0(?:\.0*)?,.*?#queue-req: (?P<queued>[1-9]\d*)"
)
_HAS_REQUESTS = re.compile(r"Running: [1-9]\d* reqs|(?:Waiting|Pending): [1-9]\d* reqs")
_QUEUE = re.compile(r"#queue-req: [1-9]")
_WHO = re.compile(r"Engine \d+:|\bDP\d+\b")
"""Engines of one server (data parallel) stand still each by itself."""
_USAGE = re.compile(r"KV cache usage: (\d+\.\d+)%")
_ANSWERED = re.compile(r'"GET /\S* HTTP/[\d.]+" 200\b')
"""Whatever was asked for (`/health`, `/version`, `/v1/models`): it is what somebody takes for a sign of life."""
_GENERATED = re.compile(r'"GET /health_generate\S* HTTP/[\d.]+" 200\b')
_CLOCK = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d):(\d\d):(\d\d)")
"""SGLang's own, whatever a carrier puts before it."""
_LOOKED_AT = 200
"""Lines of work before the end: half an hour of vLLM, some minutes of eight of its engines."""
_LINES, _LINES_ALONE = 2, 3
"""Lines of a standstill that count where health answers beside them, and by themselves: half a minute of vLLM."""
_ANSWERS_ALONE = 6
"""Answers behind a single line with requests that wait: vLLM 0.8 and later says further ones at DEBUG only."""
_SILENT_ANSWERS, _SILENT_S = 3, 60
"""SGLang prints a line for each prefill and for each 40 steps: a minute without one is longer than these take."""
_PACE = re.compile(r"#running-req: (?P<running>\d+),.*gen throughput \(token/s\): (?P<speed>\d+\.\d+),")
_STEPS, _TIMES, _LEAST_S = 40, 3, 20
"""Where a line tells its pace: so many times as long as these steps take, and so many seconds at least."""
_TOKENS = re.compile(r'"POST /(?:v1/(?:chat/)?completions|generate|v1/responses) HTTP/[\d.]+" 200\b')
_IN_VAIN = re.compile(r"APITimeoutError|504 Gateway|/v1/(?:chat/)?completions|/generate\b|/v1/responses")
"""Where it was a request for tokens that timed out."""
_WAITED_ANSWERS = 2
_STARVED = 2
"""Requests for tokens that began to be answered while no throughput line, before or after, counts a single token."""
_BLOCKED_LINES = 3
"""Minutes: a kernel that is compiled at the first request may take one or two."""
_DAY_S = 86400


def find_standstill(log: LogText, flow: Flow, evidence: Evidence) -> int | None:
    """Return the line at which a server that goes on answering stopped making tokens, or None."""
    until = evidence.marks.stopped
    answered = [i for i in sorted(log.find_any(ANSWERS)) if i < until and _ANSWERED.search(log.texts[i])]
    sights = (
        _told(log, answered),
        _silent(log, answered),
        _blocked(log, flow, answered),
        _starved(log, flow),
        _waited(log, flow, answered, evidence.muted),
    )
    return next((found for found in sights if found is not None), None)


def _told(log: LogText, answered: list[int]) -> int | None:
    """Find requests that run or wait at no throughput: the first of the lines of an engine that say so at its end."""
    runs: dict[str, list[int]] = {}
    usage: dict[str, float] = {}
    for index in sorted(log.find_any((THROUGHPUT, "Decode batch")))[-_LOOKED_AT:]:
        text = log.texts[index]
        who = match[0] if (match := _WHO.search(text)) else ""
        held = float(match[1]) if (match := _USAGE.search(text)) else 0.0
        grew = held > usage.get(who, held)
        usage[who] = held
        run = runs.setdefault(who, [])
        if grew or not _has_work_standing(text):
            run.clear()  # a long prefill counts its tokens at its end, and takes memory meanwhile
        if _has_work_standing(text):
            run.append(index)
    return min((run[0] for run in runs.values() if run and _lasts(log, run, answered)), default=None)


def _has_work_standing(text: str) -> bool:
    match = _STANDS.search(text)
    return match is not None and bool(match["queued"] or int(match["running"]) + int(match["waiting"]))


def _lasts(log: LogText, run: list[int], answered: list[int]) -> bool:
    """Whether a standstill is longer than a pause."""
    after = len(answered) - bisect_right(answered, run[0])
    waits = re.search(r"Engine \d+:.*Waiting: [1-9]", log.texts[run[-1]]) is not None
    quiet = waits and len(answered) - bisect_right(answered, run[-1]) >= _ANSWERS_ALONE
    return len(run) >= (_LINES if after else _LINES_ALONE) or quiet


def _silent(log: LogText, answered: list[int]) -> int | None:
    """Find SGLang's last line of work where requests waited, or where health calls are said to make tokens since.

    An idle scheduler makes a prefill of one token of each `/health_generate`, and prints it.
    """
    last = max(log.find_any(BATCHES), default=None)
    if last is None:
        return None
    later = answered[bisect_right(answered, last) :]
    if not _QUEUE.search(log.texts[last]):
        later = [index for index in later if _GENERATED.search(log.texts[index])]
    if len(later) < _SILENT_ANSWERS:
        return None
    silent_s = _seconds(log, last, later[-1])
    long = len(later) >= _ANSWERS_ALONE if silent_s is None else silent_s >= _longest_s(log.texts[last])
    return last if long else None


def _longest_s(batch: str) -> float:
    """Return the seconds after which another line of work should have come."""
    pace = _PACE.search(batch)
    if pace is None or not float(pace["speed"]):
        return _SILENT_S
    return max(_LEAST_S, _TIMES * _STEPS * int(pace["running"]) / float(pace["speed"]))


def _blocked(log: LogText, flow: Flow, answered: list[int]) -> int | None:
    """Find vLLM's word that its workers take nothing, minute after minute, while requests are there."""
    worked = max((*log.find(THROUGHPUT), *flow.alive), default=None)
    if worked is None or not _HAS_REQUESTS.search(log.texts[worked]):
        return None
    told = sorted(index for index in log.find_any(BLOCKED) if index > worked)
    lasts = len(told) >= _BLOCKED_LINES and bool(answered) and answered[-1] > told[0]
    return told[0] if lasts else None


def _starved(log: LogText, flow: Flow) -> int | None:
    """Find answers to requests for tokens that no token went into: vLLM's lines count none, before and after them."""
    idle = [index for index in sorted(log.find(THROUGHPUT)) if index > (flow.alive[-1] if flow.alive else -1)]
    if not idle:
        return None
    asked = [index for index in sorted(log.find_any(ANSWERS)) if idle[0] < index < idle[-1]]
    begun = [index for index in asked if _TOKENS.search(log.texts[index])]
    if any(_HAS_REQUESTS.search(log.texts[index]) for index in idle):
        return None  # the engine knows of them; a long prompt counts at its end
    return max(index for index in idle if index < begun[0]) if len(begun) >= _STARVED else None


def _waited(log: LogText, flow: Flow, answered: list[int], muted: frozenset[int]) -> int | None:
    """Find a client that waited in vain for tokens, where no line of work follows and other calls are answered."""
    worked = flow.alive[-1] if flow.alive else -1
    told = sorted(log.find_any(WAITED) - muted)
    first = next((i for i in told if i > worked and _IN_VAIN.search(log.texts[i])), None)
    if first is None or not bisect_right(answered, first):
        return None  # it was not up before
    return first if len(answered) - bisect_right(answered, first) >= _WAITED_ANSWERS else None


def _seconds(log: LogText, one: int, later: int) -> int | None:
    """Return how long after one line another was written, by their clocks; None where they have none."""
    times = [_CLOCK.search(log.texts[index]) for index in (one, later)]
    first, last = (int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3]) if m else None for m in times)
    return None if first is None or last is None else (last - first) % _DAY_S
