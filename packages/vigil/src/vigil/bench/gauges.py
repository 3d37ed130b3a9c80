"""What the engine itself says while it is measured: requests running and waiting, and what its drafts brought."""

import asyncio
import re
import time
from collections.abc import Sequence
from statistics import fmean

import msgspec

from vigil.bench.client import Client
from vigil.engine_table import MetricNames

EVERY_S = 1.0
MOST_BYTES = 8 << 20
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]{0,200})(?:\{[^\n]{0,2000}\})?[ \t]{1,8}([-+.\w]{1,40})", re.MULTILINE)


class Gauges(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the metrics; None where the engine does not tell. `at_s`: `time.perf_counter`."""

    at_s: float = 0.0
    running: float | None = None
    waiting: float | None = None
    drafts: float | None = None
    accepted: float | None = None
    tokens: float | None = None
    accept_length: float | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine said over a measurement.

    `accept_length`: tokens of a step that verified a draft, 1 where nothing of it was accepted; n-gram methods have many steps
    without one. `from_drafts`: which share of all generated tokens were accepted draft tokens.
    """

    running: float | None = None
    waiting: float | None = None
    accept_length: float | None = None
    drafts: float | None = None
    from_drafts: float | None = None


def read(text: str, names: MetricNames, at_s: float = 0.0) -> Gauges:
    """Return what a page of metrics says; samples of one name are summed over their labels."""
    sums: dict[str, list[float]] = {}
    for name, value in _SAMPLE.findall(text):
        try:
            sums.setdefault(name, []).append(float(value))
        except ValueError:
            continue

    def first(of: Sequence[str]) -> float | None:
        return next((sum(sums[name]) for name in of if name in sums), None)

    lengths = next((sums[name] for name in names.accept_length if name in sums), None)
    return Gauges(
        at_s=at_s,
        running=first(names.running),
        waiting=first(names.waiting),
        drafts=first(names.drafts),
        accepted=first(names.accepted),
        tokens=first(names.tokens_total),
        accept_length=fmean(lengths) if lengths else None,  # one sample a rank: a sum would say nothing
    )


def told(looks: Sequence[Gauges], from_s: float, to_s: float) -> Told:
    """Return what the looks of a time amount to."""
    inside = [one for one in looks if from_s <= one.at_s <= to_s]
    if not inside:
        return Told()
    drafts = _grew(inside[0].drafts, inside[-1].drafts)
    accepted = _grew(inside[0].accepted, inside[-1].accepted)
    tokens = _grew(inside[0].tokens, inside[-1].tokens)
    length = None
    if drafts and accepted is not None:
        length = 1 + accepted / drafts
    elif shown := [one.accept_length for one in inside if one.accept_length]:
        length = fmean(shown)
    return Told(
        running=_mean([one.running for one in inside]),
        waiting=_mean([one.waiting for one in inside]),
        accept_length=length,
        drafts=drafts,
        from_drafts=accepted / tokens if drafts and tokens and accepted is not None else None,
    )


def _grew(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or after < before else after - before


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return fmean(known) if known else None


async def watch(client: Client, names: MetricNames, looks: list[Gauges]) -> None:
    """Look every second until cancelled; a server without metrics is asked three times."""
    if names.path is None:
        return
    misses = 0
    while misses < 3:  # noqa: PLR2004
        status, body = await client.get(names.path)
        if status == 200 and len(body) <= MOST_BYTES:  # noqa: PLR2004
            looks.append(read(body.decode("utf-8", "replace"), names, time.perf_counter()))
            misses = 0
        else:
            misses += 1
        await asyncio.sleep(EVERY_S)
