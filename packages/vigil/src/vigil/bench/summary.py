"""What a measurement amounts to: from the replies of a load to a row. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

from vigil.bench.gauges import Gauges, told
from vigil.bench.intervals import quantile
from vigil.bench.pulse import Pulse
from vigil.bench.reply import Failure, Reply
from vigil.bench.row import Row, Spread
from vigil.bench.serve_shape import serve_shape
from vigil.bench.settings import Point

BLOCKS = 10
FEW = 5


def tokens_between(reply: Reply, from_s: float, to_s: float) -> float:
    """Return how many of a reply's tokens came in a time: its own count, spread evenly over the events that brought them."""
    if not reply.output_tokens:
        return 0.0
    times: Sequence[float] = reply.arrivals or [reply.last_s]
    inside = bisect_left(times, to_s) - bisect_left(times, from_s)
    return reply.output_tokens * inside / len(times)


def blocks_of(replies: Sequence[Reply], from_s: float, to_s: float) -> tuple[float, ...]:
    """Return the output tokens a second in each part of a time."""
    size_s = (to_s - from_s) / BLOCKS
    edges = [from_s + size_s * number for number in range(BLOCKS + 1)]
    found = [0.0] * BLOCKS
    for reply in replies:
        if reply.output_tokens and reply.last_s >= from_s and reply.started_s <= to_s:
            for number in range(BLOCKS):
                found[number] += tokens_between(reply, edges[number], edges[number + 1])
    return tuple(round(one / size_s, 4) for one in found)


def spread(pairs: Sequence[tuple[float, float]], from_s: float, to_s: float) -> Spread | None:
    """Return how values are spread; `pairs` are (time, value). None where there is none."""
    if not pairs:
        return None
    values = [value for _, value in pairs]
    parts: dict[int, list[float]] = {}
    for at_s, value in pairs:
        parts.setdefault(min(BLOCKS - 1, int((at_s - from_s) / max(1e-9, to_s - from_s) * BLOCKS)), []).append(value)
    return Spread(
        count=len(values),
        mean=fmean(values),
        p50=quantile(values, 0.5),
        p90=quantile(values, 0.9),
        p99=quantile(values, 0.99),
        blocks=tuple(median(part) for _, part in sorted(parts.items())),
    )


class Seen:
    """The replies of one load, and the time of it that counts."""

    def __init__(self, replies: Sequence[Reply], from_s: float, to_s: float) -> None:
        self.all, self.from_s, self.to_s = replies, from_s, to_s
        self.good = [one for one in replies if one.failure is None]
        self.ended = [one for one in self.good if from_s <= one.last_s <= to_s]
        self.begun = [one for one in self.good if from_s <= one.started_s <= to_s]

    def spread(
        self, of: Iterable[Reply], value: Callable[[Reply], float | None], at: Callable[[Reply], float]
    ) -> Spread | None:
        """Return how a value of replies is spread."""
        pairs = [(at(one), found) for one in of if (found := value(one)) is not None]
        return spread(pairs, self.from_s, self.to_s)


def row_of(  # noqa: PLR0913 - all that a row is made of
    arm: str, point: Point, number: int, seen: Seen, *, began: float, began_s: float, steady: bool, pulse: Pulse,
    looks: Sequence[Gauges] = (), trouble: str | None = None,
) -> Row:  # fmt: skip
    """Return the row of a load that is over. `began`: Unix time, `began_s`: the same moment of `time.perf_counter`."""
    window_s = max(1e-9, seen.to_s - seen.from_s)
    whole = [one for one in seen.ended if one.whole_length]
    cached = [one.cached_tokens for one in seen.ended if one.cached_tokens is not None]
    events = [len(one.arrivals) for one in seen.ended if one.streamed and one.arrivals]
    blocks = blocks_of(seen.good, seen.from_s, seen.to_s)
    return Row(
        arm=arm, point=point, round=number, began=began,
        lasted_s=max([seen.to_s, *(one.ended_s for one in seen.all)]) - began_s,
        warmup_s=seen.from_s - began_s, window_s=window_s, steady=steady, sent=len(seen.all), ended=len(seen.ended),
        failures=dict(Counter(one.failure.value for one in seen.all if one.failure is not None)),
        failure_text=next((one.detail for one in seen.all if one.failure is not None), ""),
        input_tokens=_mean([one.input_tokens for one in seen.ended]),
        output_tokens=_mean([one.output_tokens or 0 for one in whole]),
        cached_tokens=fmean(cached) if cached else None,
        tokens_an_event=sum(one.output_tokens or 0 for one in seen.ended if one.streamed) / sum(events) if events else None,
        output_per_s=fmean(blocks), requests_per_s=len(seen.ended) / window_s, blocks=blocks,
        ttft_s=seen.spread(seen.begun, lambda one: one.ttft_s, lambda one: one.started_s),
        tpot_s=seen.spread(seen.ended, lambda one: one.tpot_s, lambda one: one.last_s),
        e2e_s=seen.spread(whole, lambda one: one.e2e_s, lambda one: one.last_s),
        told=told(looks, seen.from_s, seen.to_s), client=pulse, notes=notes_on(seen, pulse, steady=steady, trouble=trouble),
        serve=serve_shape(seen.ended, len(seen.all) - len(seen.good), window_s, point, began),
    )  # fmt: skip


def notes_on(seen: Seen, pulse: Pulse, *, steady: bool, trouble: str | None) -> tuple[str, ...]:
    """Return in words what makes a measurement doubtful."""
    notes = [] if steady else ["no steady state was found"]
    if trouble is not None:
        notes.append(trouble)
    if pulse.limit is not None:
        notes.append(f"{pulse.limit}: {pulse.advice}")
    if len(seen.ended) < FEW:
        notes.append(f"only {len(seen.ended)} requests ended in the time that counts: latencies of so few say little")
    if seen.ended and not any(one.streamed for one in seen.ended):
        notes.append("the server does not stream: there is no time per token")
    cached = sum(one.cached_tokens or 0 for one in seen.ended)
    prompts = sum(one.input_tokens for one in seen.ended)
    if prompts and cached / prompts > 0.5:  # noqa: PLR2004
        notes.append(f"{cached / prompts:.0%} of the prompts' tokens came from a cache")
    if any(one.failure is Failure.UNSENT for one in seen.all):
        notes.append("requests were not sent, since too many were open: this is more than the server takes")
    return tuple(notes)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
