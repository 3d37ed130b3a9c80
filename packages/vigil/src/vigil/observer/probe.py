"""Standing questions over HTTP, each in a thread of its own: health, model list, counters."""

import json
import re
import threading
import time
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from .exchange import Reply, Target, exchange
from .keys import KeyRing
from .report import BODY_CHARS, Reporter

KEY_REFUSED = (401, 403)
OWNER_S = 0.5
MODELS = 64
MODEL_CHARS = 200
METRICS_BYTES = 4 << 20
Answered = Callable[[Reply], None]


class Standing:
    """A thread that does the same thing every `every_s` seconds until it is stopped. A slow turn makes no turn up."""

    def __init__(self, name: str, every_s: float, turn: Callable[[], None], trouble: Callable[[str], None]) -> None:
        self._every_s = max(0.01, every_s)
        self._turn = turn
        self._trouble = trouble
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"vigil-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it; a question on its way is not waited for, and its answer goes unheard."""
        self._over.set()

    @property
    def stopped(self) -> bool:
        """Tell whether it was stopped."""
        return self._over.is_set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._over.is_set():
            begun = time.monotonic()
            try:
                self._turn()
            except Exception as error:
                self._trouble(f"a probe failed: {type(error).__name__}: {error}")
            self._over.wait(max(0.0, begun + self._every_s - time.monotonic()))


class Probe:
    """A standing GET. It reports each new outcome, and the same again every `repeat_s` with a count."""

    def __init__(
        self, command: Dict[str, Any], target: Target, keys: KeyRing, report: Reporter, answered: Answered
    ) -> None:
        self._name = str(command.get("probe", ""))
        self._path = str(command.get("path", "/"))
        self._timeout_s = float(command.get("timeout_s") or 5.0)
        self._repeat_s = float(command.get("repeat_s") or 10.0)
        self._target = target
        self._keys = keys
        self._report = report
        self._answered = answered
        self._last: Optional[Tuple[Any, ...]] = None
        self._reported_s = 0.0
        self._repeats = 0
        self.standing = Standing(self._name, float(command.get("every_s") or 1.0), self._ask, report.trouble)

    def _ask(self) -> None:
        reply = exchange(self._target, "GET", self._path, self._timeout_s, key=self._keys.key())
        if self.standing.stopped:
            return
        self._answered(reply)
        if reply.status in KEY_REFUSED and self._keys.await_owner(
            OWNER_S
        ):  # it answered before we saw whose port it is
            reply = exchange(self._target, "GET", self._path, self._timeout_s, key=self._keys.key())
        models = read_models(reply.body) if reply.status == 200 else ()  # noqa: PLR2004
        location = reply.headers.get("location", "")
        outcome = (reply.status, reply.error, models, location, reply.headers.get("process-start-time-unix"))
        now = time.monotonic()
        self._repeats = self._repeats + 1 if outcome == self._last else 1
        if outcome == self._last and now - self._reported_s < self._repeat_s:
            return
        self._last = outcome
        self._reported_s = now
        self._tell(reply, models, location)
        self._repeats = 0

    def _tell(self, reply: Reply, models: Tuple[str, ...], location: str) -> None:
        shorten = self._report.shorten
        body = "" if models else shorten(reply.body[: BODY_CHARS * 4].decode("utf-8", "replace"), BODY_CHARS)
        self._report.say(
            "ProbeAnswered",
            probe=self._name,
            status=reply.status,
            error=reply.error,
            latency_s=round(reply.latency_s, 6),
            repeats=self._repeats,
            models=[shorten(model, MODEL_CHARS) for model in models],
            body=body,
            location=shorten(location, BODY_CHARS),
            server_started=shorten(reply.headers.get("process-start-time-unix", ""), 64),
        )


def read_models(body: bytes) -> Tuple[str, ...]:
    """Return the model ids that a reply lists: `data[].id`, or `models[].model` as llama-server adds."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(reply, dict):
        return ()
    for field, names in (("data", ("id",)), ("models", ("id", "model", "name"))):
        listed = reply.get(field)
        if isinstance(listed, list) and listed:
            found = (_first_text(entry, names) for entry in listed[:MODELS])
            return tuple(name[:MODEL_CHARS] for name in found if name)
    return ()


def _first_text(entry: Any, names: Sequence[str]) -> str:
    values = [entry.get(name) for name in names] if isinstance(entry, dict) else []
    return next((value for value in values if isinstance(value, str) and value), "")


class Metrics:
    """A standing read of the server's counters."""

    def __init__(self, command: Dict[str, Any], target: Target, keys: KeyRing, report: Reporter) -> None:
        self._path = str(command.get("path") or "/metrics")
        self._timeout_s = float(command.get("timeout_s") or 5.0)
        self._wanted = {
            field: [sample_pattern(str(name)) for name in command.get(field) or ()]
            for field in ("running", "waiting", "tokens_total")
        }
        self._target = target
        self._keys = keys
        self._report = report
        self._seen = True
        self.standing = Standing("metrics", float(command.get("every_s") or 5.0), self._ask, report.trouble)

    def _ask(self) -> None:
        reply = exchange(self._target, "GET", self._path, self._timeout_s, key=self._keys.key(), limit=METRICS_BYTES)
        if self.standing.stopped:
            return
        values = {}
        if reply.status == 200:  # noqa: PLR2004
            text = reply.body.decode("utf-8", "replace")
            values = {field: read_samples(text, patterns) for field, patterns in self._wanted.items()}
        seen = any(value is not None for value in values.values())
        if seen or self._seen:  # that they cannot be seen any more is said once
            self._report.say("MetricsSeen", **values)
        self._seen = seen


def sample_pattern(name: str) -> "re.Pattern[str]":
    """Return what finds the samples of a metric in a page of them."""
    return re.compile(rf"^{re.escape(name)}(?:\{{.*\}})?[ \t]+([-+.0-9eE]+)", re.MULTILINE)


def read_samples(text: str, patterns: Sequence["re.Pattern[str]"]) -> Optional[float]:
    """Return the sum over the labels of the first name that is present, or None."""
    for pattern in patterns:
        values = []
        for found in pattern.findall(text):
            try:
                values.append(float(found))
            except ValueError:
                continue
        if values:
            return sum(values)
    return None
