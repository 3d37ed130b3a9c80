"""Measure speculation: have a few real prompts answered, and read how many tokens each step of the target made.

SGLang's own endpoint counts the steps of an answer, llama-server the tokens drafted and accepted for it; of vLLM the counters
before and after are compared, which hold the requests of others, too.
"""

import json
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .exchange import Target, exchange
from .probe import read_samples, sample_pattern

PROMPTS = (
    "Count from one to thirty in words: one, two, three, four, five,",
    "List the days of the week, then the months of the year, in order:\n1. Monday\n2. Tuesday\n3.",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
)
TOKENS = 64
TELLING = ("/generate", "/completion")
"""Where each answer counts what was drafted for it, and leaves that out where nothing was: SGLang's and llama-server's own."""
METRICS_BYTES = 8 << 20
METRICS_S = 5.0
SETTLE_S = 1.5  # a counter may be written a moment after the answer that it counts


class Measure(NamedTuple):
    """What is asked: `path` answers completions, `metrics` has the counters (None: there are none)."""

    path: str
    model: str
    timeout_s: float
    metrics: Optional[str]
    drafts: Tuple[str, ...]
    proposed: Tuple[str, ...]
    accepted: Tuple[str, ...]


def read_measure(command: Dict[str, Any]) -> Measure:
    """Return what a `measure` command asks for."""
    names = {field: tuple(str(one) for one in command.get(field) or ()) for field in ("drafts", "proposed", "accepted")}
    metrics = command.get("metrics")
    return Measure(
        path=str(command.get("path") or ""),
        model=str(command.get("model") or ""),
        timeout_s=float(command.get("timeout_s") or 60.0),
        metrics=metrics if isinstance(metrics, str) else None,
        **names,
    )


def measure(target: Target, key: Optional[str], asked: Measure) -> Dict[str, Any]:
    """Return the fields of `SpeculationMeasured`."""
    if not asked.path:
        return {"error": "it is not known where this engine tells of it"}
    until_s = time.monotonic() + asked.timeout_s
    before = _counters(target, key, asked)
    answers: List[Dict[str, Any]] = []
    for prompt in PROMPTS:
        body = json.dumps(_question(asked, prompt)).encode("utf-8")
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            break
        reply = exchange(target, "POST", asked.path, left_s, body=body, key=key)
        if reply.status != 200 and answers:  # noqa: PLR2004
            break  # a slow server: what has been answered must do
        if reply.status != 200:  # noqa: PLR2004
            return {"answers": answers, "error": "%s: %s" % (asked.path, reply.status or reply.error)}
        answers.append(_told(reply.body))
    if any(one.get("steps") for one in answers):
        return {"answers": answers, "source": asked.path}
    after = _later(target, key, asked, before)
    own = asked.path.endswith(TELLING) and any(one.get("tokens") for one in answers)
    if not asked.drafts or (own and (before is None or after is None)):
        return {"answers": answers, "source": asked.path if any(one.get("tokens") for one in answers) else ""}
    if before is None or after is None:
        return {"answers": answers, "error": "its counters (%s) cannot be read" % asked.metrics}
    drafts, proposed, accepted = (int(now - then) for now, then in zip(after, before))  # noqa: B905 - 3.9
    whole = {"tokens": drafts + accepted, "steps": drafts, "proposed": proposed, "accepted": accepted}
    return {"answers": [whole] if drafts else answers, "source": asked.metrics or ""}


def _question(asked: Measure, prompt: str) -> Dict[str, Any]:
    if asked.path.endswith("/generate"):  # SGLang's own
        return {"text": prompt, "sampling_params": {"max_new_tokens": TOKENS, "temperature": 0}}
    if asked.path.endswith("/completion"):  # llama-server's own
        return {"prompt": prompt, "n_predict": TOKENS, "temperature": 0}
    return {"prompt": prompt, "max_tokens": TOKENS, "temperature": 0, **({"model": asked.model} if asked.model else {})}


def _told(body: bytes) -> Dict[str, Any]:
    """Return what one answer says of itself."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        reply = {}
    reply = reply[0] if isinstance(reply, list) and reply else reply
    inside = {name: _part(reply, name) for name in ("meta_info", "timings", "usage")}
    meta, timings = inside["meta_info"], inside["timings"]
    tokens = (
        _count(meta, "completion_tokens")
        or _count(timings, "predicted_n")
        or _count(inside["usage"], "completion_tokens")
    )
    steps = _count(meta, "spec_verify_ct")
    proposed, accepted = _count(timings, "draft_n"), _count(timings, "draft_n_accepted")
    if proposed and tokens:
        steps = max(1, tokens - (accepted or 0))
    found = {"tokens": tokens or 0, "steps": steps, "proposed": proposed, "accepted": accepted}
    return {name: value for name, value in found.items() if value is not None}


def _part(value: Any, name: str) -> Dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _count(value: Dict[str, Any], name: str) -> Optional[int]:
    found = value.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 53 else None


def _later(target: Target, key: Optional[str], asked: Measure, before: Optional[List[float]]) -> Optional[List[float]]:
    """Return the counters once they moved, or a moment has passed."""
    until_s = time.monotonic() + SETTLE_S
    while True:
        now = _counters(target, key, asked)
        if before is None or (now is not None and now != before) or time.monotonic() >= until_s:
            return now
        time.sleep(0.1)


def _counters(target: Target, key: Optional[str], asked: Measure) -> Optional[List[float]]:
    """Return drafts, tokens proposed and accepted since the server's start; None where nobody counts."""
    if asked.metrics is None or not asked.drafts:
        return None
    reply = exchange(target, "GET", asked.metrics, METRICS_S, key=key, limit=METRICS_BYTES)
    if reply.status != 200:  # noqa: PLR2004
        return None
    text = reply.body.decode("utf-8", "replace")
    wanted = (asked.drafts, asked.proposed, asked.accepted)
    return [read_samples(text, [sample_pattern(name) for name in names]) or 0.0 for names in wanted]
