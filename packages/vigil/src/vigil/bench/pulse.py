"""Whether this program itself is the limit: its share of a core, and how late its event loop wakes up."""

import asyncio
import time
from array import array

import msgspec

BEAT_S = 0.01
FULL_SHARE = 0.85
LATE_S = 0.05


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu_share`: of one core; `lag_p50_s`, `lag_p99_s`: how much later than asked the event loop woke up."""

    cpu_share: float
    lag_p50_s: float
    lag_p99_s: float

    @property
    def limit(self) -> str | None:
        """In words why the client was the limit, or None where it was not."""
        if self.cpu_share >= FULL_SHARE:
            return f"the client used {self.cpu_share:.0%} of a core"
        if self.lag_p99_s >= LATE_S:
            return f"the client's event loop woke up {self.lag_p99_s * 1000:.0f} ms late"
        return None


class Heart:
    """Beats while a measurement runs; `pulse` tells of the time between two moments."""

    def __init__(self) -> None:
        self._at = array("d")
        self._lag = array("d")
        self._cpu = array("d")

    async def beat(self) -> None:
        """Beat until cancelled."""
        while True:
            asked_s = time.perf_counter() + BEAT_S
            await asyncio.sleep(BEAT_S)
            now_s = time.perf_counter()
            self._at.append(now_s)
            self._lag.append(max(0.0, now_s - asked_s))
            self._cpu.append(time.thread_time())

    def pulse(self, from_s: float, to_s: float) -> Pulse:
        """Return how it went from one moment to another (`time.perf_counter`)."""
        inside = [index for index, at_s in enumerate(self._at) if from_s <= at_s <= to_s]
        if len(inside) < 2:  # noqa: PLR2004 - it never woke up, which is as late as can be
            return Pulse(cpu_share=1.0, lag_p50_s=to_s - from_s, lag_p99_s=to_s - from_s)
        first, last = inside[0], inside[-1]
        lags = sorted(self._lag[index] for index in inside)
        share = (self._cpu[last] - self._cpu[first]) / (self._at[last] - self._at[first])
        return Pulse(
            cpu_share=share, lag_p50_s=lags[len(lags) // 2], lag_p99_s=lags[min(len(lags) - 1, int(len(lags) * 0.99))]
        )
