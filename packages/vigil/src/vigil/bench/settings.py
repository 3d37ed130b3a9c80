"""What is measured, and how: the same for every arm and written down with every result."""

from typing import Literal

import msgspec

from vigil.bench.brake import Backoff
from vigil.bench.reply import Limits


class Point(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One load: so many requests open at once (closed loop), or so many a second (open loop, Poisson)."""

    kind: Literal["concurrency", "rate"] = "concurrency"
    value: float

    @property
    def text(self) -> str:
        """The load in words."""
        return f"{self.value:g} at once" if self.kind == "concurrency" else f"{self.value:g} a second"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How each load is measured. Lengths are tokens by the server's own count; `seconds`: of steady state, each time.

    `most_s`: give a load up after so long, 0: four times `seconds` and at least a minute. `requests`: measure exactly so many
    requests from first to last instead of a steady state. `repeats`: rounds over all loads. `ignore_eos`: generate the fixed
    length whatever the model says. `range_ratio`: lengths are drawn evenly from that share below to that share above, 0: all are
    alike (as `--random-range-ratio` of `vllm bench serve`). `processes`: of the client, that share each load.
    """

    input_tokens: int = 512
    output_tokens: int = 128
    range_ratio: float = 0.0
    seconds: float = 15.0
    most_s: float = 0.0
    requests: int | None = None
    repeats: int = 3
    seed: int = 1
    ignore_eos: bool = True
    temperature: float = 0.0
    chat: bool = False
    most_open: int = 4096
    processes: int = 1
    limits: Limits = Limits()
    backoff: Backoff = Backoff()

    @property
    def most_output(self) -> int:
        """The longest answer that is asked for, where no prompt says how long its own is."""
        return round(self.output_tokens * (1 + self.range_ratio))

    @property
    def most_input(self) -> int:
        """The length of the longest prompt that is made."""
        return round(self.input_tokens * (1 + self.range_ratio))

    @property
    def longest_s(self) -> float:
        """How long one load may take before it is measured as it is."""
        return self.most_s or max(60.0, 4 * self.seconds)
