"""Whether this program itself is the limit: its share of a core, and how late its event loop wakes up."""

import asyncio
import os
import time
from array import array
from collections.abc import Sequence
from typing import Self

import msgspec

BEAT_S = 0.01
FULL_SHARE = 0.85
BUSY_SHARE = 0.5
LATE_S = 0.05


class Pulse(msgspec.Struct, frozen=True, kw_only=True):
    """`cpu_share`: of one core; `lag_p50_s`, `lag_p99_s`: how much later than asked the event loop woke up.

    Of several `processes` it is each time the worst one's. `cores`: that the client may use; 0 where that is not known.
    """

    cpu_share: float
    lag_p50_s: float
    lag_p99_s: float
    processes: int = 1
    cores: int = 0

    @property
    def limit(self) -> str | None:
        """In words why the client was the limit, or None where it was not."""
        who = "the client" if self.processes == 1 else f"one of the {self.processes} client processes"
        if self.cpu_share >= FULL_SHARE:
            return f"{who} used {self.cpu_share:.0%} of a core"
        if self.lag_p99_s >= LATE_S:
            return f"the event loop of {who} woke up {self.lag_p99_s * 1000:.0f} ms late"
        return None

    @property
    def advice(self) -> str:
        """What to do where the client was the limit. It is never done by itself: rows of other clients compare badly."""
        if self.cpu_share < BUSY_SHARE:
            return f"it used {self.cpu_share:.0%} of a core: what else runs here is in its way"
        if self.processes >= self.cores:
            return "measure from a machine with more cores"
        return f"give --processes {min(self.cores, 2 * self.processes)}"


def worst(pulses: Sequence[Pulse]) -> Pulse:
    """Return the worst of several processes in each figure."""
    return Pulse(
        cpu_share=max(one.cpu_share for one in pulses),
        lag_p50_s=max(one.lag_p50_s for one in pulses),
        lag_p99_s=max(one.lag_p99_s for one in pulses),
        processes=len(pulses),
        cores=max(one.cores for one in pulses),
    )


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

    def packed(self) -> tuple[bytes, bytes, bytes]:
        """Return all beats as bytes."""
        return self._at.tobytes(), self._lag.tobytes(), self._cpu.tobytes()

    @classmethod
    def unpacked(cls, parts: tuple[bytes, bytes, bytes]) -> Self:
        """Return the heart that was packed."""
        heart = cls()
        for kept, part in zip((heart._at, heart._lag, heart._cpu), parts, strict=True):
            kept.frombytes(part)
        return heart

    def pulse(self, from_s: float, to_s: float) -> Pulse:
        """Return how it went from one moment to another (`time.perf_counter`)."""
        cores = len(os.sched_getaffinity(0))
        inside = [index for index, at_s in enumerate(self._at) if from_s <= at_s <= to_s]
        if len(inside) < 2:  # noqa: PLR2004 - it never woke up, which is as late as can be
            return Pulse(cpu_share=1.0, lag_p50_s=to_s - from_s, lag_p99_s=to_s - from_s, cores=cores)
        first, last = inside[0], inside[-1]
        lags = sorted(self._lag[index] for index in inside)
        late_s = lags[min(len(lags) - 1, int(len(lags) * 0.99))]
        share = (self._cpu[last] - self._cpu[first]) / (self._at[last] - self._at[first])
        return Pulse(cpu_share=share, lag_p50_s=lags[len(lags) // 2], lag_p99_s=late_s, cores=cores)
