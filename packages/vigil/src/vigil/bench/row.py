"""One finished measurement as it is kept: a line of JSON, enough to compare and to draw it later."""

from typing import Any

import msgspec

from vigil.bench.gauges import Told
from vigil.bench.pulse import Pulse
from vigil.bench.settings import Point

SCHEMA = 1


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How a quantity is spread over requests. `blocks`: its median in each part of the time that counts."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    blocks: tuple[float, ...] = ()


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no measurement: a verdict's word, the code of its cause, and its line."""

    verdict: str
    code: str | None = None
    text: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one arm at one load in one round.

    Seconds and tokens; `began` is Unix time. `output_per_s`, `requests_per_s`: in the time that counts, which lasted `window_s`
    and began `warmup_s` after the load; `blocks`: `output_per_s` in parts of it. `ended`: requests that ended in it, all others
    with what was still open afterwards. `failures` counts by kind, of the whole run. `serve`: the same in the shape that
    `vllm bench serve` writes. `cause`: there is no measurement, and why.
    """

    schema: int = SCHEMA
    arm: str
    point: Point
    round: int
    began: float
    lasted_s: float
    warmup_s: float = 0.0
    window_s: float = 0.0
    steady: bool = False
    sent: int = 0
    ended: int = 0
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    failure_text: str = ""
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    cached_tokens: float | None = None
    tokens_an_event: float | None = None
    output_per_s: float = 0.0
    requests_per_s: float = 0.0
    blocks: tuple[float, ...] = ()
    ttft_s: Spread | None = None
    tpot_s: Spread | None = None
    e2e_s: Spread | None = None
    told: Told = Told()
    client: Pulse | None = None
    notes: tuple[str, ...] = ()
    cause: Cause | None = None
    serve: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def key(self) -> tuple[str, Point, int]:
        """What makes two rows the same measurement."""
        return (self.arm, self.point, self.round)

    @property
    def measured(self) -> bool:
        """Whether there is a measurement."""
        return self.cause is None and self.output_per_s > 0
