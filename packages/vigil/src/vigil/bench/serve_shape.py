"""A measurement in the shape that `vllm bench serve --save-result` writes (vLLM 0.32), so that other tools read it. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, pstdev
from time import gmtime, strftime
from typing import Any

from vigil.bench.intervals import quantile
from vigil.bench.reply import Reply
from vigil.bench.settings import Point


def serve_shape(replies: Sequence[Reply], failed: int, duration_s: float, point: Point, began: float) -> dict[str, Any]:
    """Return the summary of requests that were answered in `duration_s`; times in milliseconds, as there."""
    output = sum(one.output_tokens or 0 for one in replies)
    prompts = sum(one.input_tokens for one in replies)
    gaps = [after - before for one in replies if one.streamed for before, after in pairwise(one.arrivals)]
    closed = point.kind == "concurrency"
    return {
        "date": strftime("%Y%m%d-%H%M%S", gmtime(began)),
        "endpoint_type": "openai",
        "backend": "openai",
        "num_prompts": len(replies) + failed,
        "request_rate": "inf" if closed else point.value,
        "burstiness": 1.0,
        "max_concurrency": int(point.value) if closed else None,
        "duration": duration_s,
        "completed": len(replies),
        "failed": failed,
        "total_input_tokens": prompts,
        "total_output_tokens": output,
        "request_throughput": len(replies) / duration_s,
        "output_throughput": output / duration_s,
        "total_token_throughput": (prompts + output) / duration_s,
        "request_goodput": None,
        "max_output_tokens_per_s": _most_in_a_second(replies),
        "max_concurrent_requests": _most_at_once(replies),
        **_millis("ttft", [one.ttft_s for one in replies if one.ttft_s is not None]),
        **_millis("tpot", [one.tpot_s for one in replies if one.tpot_s is not None]),
        **_millis("itl", gaps),
        **_millis("e2el", [one.e2e_s for one in replies]),
    }


def _most_in_a_second(replies: Sequence[Reply]) -> float:
    """Return the most output tokens that came within one second of the clock."""
    seconds: defaultdict[int, float] = defaultdict(float)
    for one in replies:
        each = (one.output_tokens or 0) / max(1, len(one.arrivals))
        for at_s in one.arrivals:
            seconds[int(at_s)] += each
    return max(seconds.values(), default=0.0)


def _most_at_once(replies: Sequence[Reply]) -> int:
    """Return how many requests were open at the same time at most."""
    edges = sorted([(one.started_s, 1) for one in replies] + [(one.ended_s, -1) for one in replies])
    return max(accumulate(step for _, step in edges), default=0)


def _millis(name: str, values_s: Sequence[float]) -> dict[str, float]:
    if not values_s:
        return {}
    return {
        f"mean_{name}_ms": fmean(values_s) * 1000,
        f"median_{name}_ms": quantile(values_s, 0.5) * 1000,
        f"std_{name}_ms": pstdev(values_s) * 1000,
        f"p99_{name}_ms": quantile(values_s, 0.99) * 1000,
    }
