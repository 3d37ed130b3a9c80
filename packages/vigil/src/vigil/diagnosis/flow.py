"""Reads the lines that a server prints because it works: tokens, and the answers that it gave over HTTP."""

import math
import re
from bisect import bisect_right
from functools import cached_property
from http import HTTPStatus
from typing import NamedTuple

from vigil.diagnosis.rules import how_to_read
from vigil.diagnosis.text import LogText

THROUGHPUT = "Avg generation throughput:"
ALIVE = ("Decode batch", "Prefill batch", THROUGHPUT, "eval time =", "prompt processing progress")
ANSWERS = ("/health", "/ping", '"POST /', '"GET /version', '"GET /v1/models')
_NO_TOKENS = re.compile(r"Avg prompt throughput: 0(?:\.0*)? .*?Avg generation throughput: 0(?:\.0*)? ")
"""Of a long prompt there is work to see before its first token."""
_HEALTH_CALL = re.compile(r"Prefill batch[.,] #new-seq: [01], #new-token: [01],")
"""SGLang answers a health call by a prefill of one token."""
_HEALTH = re.compile(r'GET /(?:health\w*|ping)(?:\?\S*)?(?: HTTP/[\d.]+")? (?:[\d.:a-f]+ )?(?P<status>\d{3})\b')
_POST = re.compile(r'"POST /\S* HTTP/[\d.]+" (?P<status>\d{3})\b')
_SURVIVED = 3
"""Lines of work after an error that show that nothing died of it; fewer may be what other ranks had left to print."""

_SERVED = 20
"""Requests answered after an error that show that nothing died of it. Few do not: a stream's line is written at its begin."""
_LOOKED_AT = 100


class Answer(NamedTuple):
    """What the server answered to a probe or to a request for tokens."""

    at: int
    status: int
    health: bool


class Flow:
    """The work that an attempt's lines show."""

    def __init__(self, log: LogText) -> None:
        self._log = log
        self.alive = sorted(index for index in log.find_any(ALIVE) if _works(log.texts[index]))
        self._gone = sorted(log.find_any(how_to_read().gone))

    @cached_property
    def answers(self) -> list[Answer]:
        """The answers to probes and to requests for tokens, in order."""
        found: list[Answer] = []
        for index in sorted(self._log.find_any(ANSWERS)):
            text = self._log.texts[index]
            if match := _HEALTH.search(text):
                found.append(Answer(index, int(match["status"]), health=True))
            elif match := _POST.search(text):
                found.append(Answer(index, int(match["status"]), health=False))
        return found

    @property
    def gone_last(self) -> int:
        """The last line in which the server, or its parent, says that this is the end; -1 without one."""
        return self._gone[-1] if self._gone else -1

    def gone_after(self, index: int) -> int | None:
        """Return the first line after `index` in which the server, or its parent, says that this is the end."""
        place = bisect_right(self._gone, index)
        return self._gone[place] if place < len(self._gone) else None

    def survived(self, index: int) -> bool:
        """Whether the same process went on working after line `index`, until the end that the log tells of."""
        gone = self.gone_after(index)
        writer = self._log.read(index).rank
        count = 0
        for later in self.alive[bisect_right(self.alive, index) :][:_LOOKED_AT]:
            if gone is not None and later > gone:
                break
            count += not writer or self._log.read(later).rank in {"", writer}
        return count >= _SURVIVED or self._served_after(index, gone) >= _SERVED

    def works_after(self, index: int, end: int | None = None, *, health: bool = True) -> bool:
        """Whether it did work, or answered well, after line `index` and before line `end`; `health`: probes count, too."""
        last = math.inf if end is None else end
        good = (a.at for a in self.answers if a.status == HTTPStatus.OK and (health or not a.health))
        return any(index < at < last for at in (*self.alive, *good))

    def refused_after(self, index: int) -> bool:
        """Whether a request after line `index` met an error of the server's own."""
        return any(a.at > index and a.status >= HTTPStatus.INTERNAL_SERVER_ERROR for a in self.answers)

    def _served_after(self, index: int, gone: int | None) -> int:
        """Return how many requests for tokens were answered after line `index`, until the end that the log tells of."""
        behind = (a for a in self.answers if a.at > index and (gone is None or a.at < gone))
        return sum(not a.health and a.status == HTTPStatus.OK for a in behind)


def _works(text: str) -> bool:
    return not _NO_TOKENS.search(text) and not _HEALTH_CALL.search(text)
