"""What became of one request: when its tokens came, how many the server says there were, or how it failed."""

from array import array
from enum import StrEnum

import msgspec


class Failure(StrEnum):
    """Why a request brought no usable answer; the words of results."""

    UNREACHABLE = "unreachable"
    DROPPED = "dropped"
    THROTTLED = "throttled"
    REFUSED = "refused"
    BROKEN = "broken"
    SILENT = "silent"
    EMPTY = "empty"
    FLOODED = "flooded"
    GARBLED = "garbled"
    UNCOUNTED = "uncounted"
    CUT = "cut"
    UNSENT = "unsent"


MEANINGS: dict[Failure, str] = {
    Failure.UNREACHABLE: "no connection",
    Failure.DROPPED: "the connection ended in the middle of the answer",
    Failure.THROTTLED: "429 or 503: the server asked us to come back later",
    Failure.REFUSED: "another 4xx: the server does not take such a request",
    Failure.BROKEN: "5xx, or an error in the middle of the answer",
    Failure.SILENT: "not one byte for longer than the patience",
    Failure.EMPTY: "an answer without a token",
    Failure.FLOODED: "an answer longer than any that was asked for",
    Failure.GARBLED: "an answer that is no HTTP or no JSON",
    Failure.UNCOUNTED: "tokens came, and the server did not say how many",
    Failure.CUT: "still unanswered when the measuring gave up waiting",
    Failure.UNSENT: "not sent: too many requests were open already",
}
"""What each kind of failure means, for tables and docs."""


class Reply:
    """One request, filled in while it is answered. Times are seconds of `time.perf_counter`.

    `arrivals` are the times of the events that brought text; one of them may stand for several tokens, so `output_tokens` is
    what the server counted. `failure` None: it was answered whole.
    """

    __slots__ = (
        "arrivals",
        "cached_tokens",
        "detail",
        "ended_s",
        "failure",
        "finish",
        "input_tokens",
        "last_s",
        "output_tokens",
        "retry_after_s",
        "started_s",
        "status",
        "streamed",
        "whole_length",
    )

    def __init__(self, started_s: float) -> None:
        self.started_s = started_s
        self.ended_s = started_s
        self.last_s = started_s
        self.arrivals: array[float] = array("d")
        self.input_tokens = 0
        self.cached_tokens: int | None = None
        self.output_tokens: int | None = None
        self.finish: str | None = None
        self.failure: Failure | None = None
        self.detail = ""
        self.status = 0
        self.retry_after_s: float | None = None
        self.streamed = False
        self.whole_length = True  # False: it was made shorter on purpose, to put requests out of step

    @property
    def ttft_s(self) -> float | None:
        """Seconds to the first token, or None where none came."""
        return self.arrivals[0] - self.started_s if self.arrivals else None

    @property
    def tpot_s(self) -> float | None:
        """Seconds per output token after the first; None where there was one at most, or the answer came at once."""
        if not self.streamed or not self.output_tokens or self.output_tokens < 2 or len(self.arrivals) < 2:  # noqa: PLR2004
            return None
        return (self.last_s - self.arrivals[0]) / (self.output_tokens - 1)

    @property
    def e2e_s(self) -> float:
        """Seconds from the sending to the last token."""
        return self.last_s - self.started_s


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer may cost. `silence_s`: without a byte; `whole_s`: in all; `reply_bytes`: length of an answer."""

    connect_s: float = 10.0
    silence_s: float = 120.0
    whole_s: float = 1800.0
    reply_bytes: int = 64 << 20
    event_bytes: int = 1 << 20
