"""Ask for one real completion: the only proof that a server serves."""

import json
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .exchange import Reply, Target, exchange
from .keys import KeyRing
from .report import BODY_CHARS, Reporter

PROMPT = "The capital of France is"
_NOT_HERE = (404, 405, 501)


class Ask(NamedTuple):
    """One question, as it was commanded."""

    paths: List[str]
    model: str
    tokens: int
    timeout_s: float
    delay_s: float


def read_ask(command: Dict[str, Any]) -> Ask:
    """Return the question that a `token` command wants."""
    return Ask(
        paths=[str(path) for path in command.get("paths") or ["/v1/completions", "/v1/chat/completions"]],
        model=str(command.get("model") or ""),
        tokens=max(1, int(command.get("tokens") or 1)),
        timeout_s=float(command.get("timeout_s") or 20.0),
        delay_s=float(command.get("delay_s") or 0.0),
    )


def request_body(path: str, ask: Ask) -> bytes:
    """Return what to post to a path: chat, plain completion, or an engine's own form."""
    body: Dict[str, Any]
    if "chat" in path:
        body = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": ask.tokens, "temperature": 0}
    elif path.endswith("/generate"):  # SGLang's own
        body = {"text": PROMPT, "sampling_params": {"max_new_tokens": ask.tokens, "temperature": 0}}
    elif path.endswith("/completion"):  # llama-server's own
        body = {"prompt": PROMPT, "n_predict": ask.tokens, "temperature": 0}
    else:
        body = {"prompt": PROMPT, "max_tokens": ask.tokens, "temperature": 0}
    if ask.model:
        body = {"model": ask.model, **body}
    return json.dumps(body).encode("utf-8")


def count_tokens(body: bytes) -> Optional[int]:
    """Return the number of tokens that a reply says it made, or None where it does not say."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(reply, list) and reply:
        reply = reply[0]
    places = (
        ("usage", "completion_tokens"),
        ("timings", "predicted_n"),
        ("meta_info", "completion_tokens"),
        ("tokens_predicted",),
    )
    for place in places:
        value: Any = reply
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53:
            return value
    return None


class Completions:
    """One completion at a time, in a thread that ends when none is wanted. A later command replaces one that waits."""

    def __init__(self, target: Target, keys: KeyRing, report: Reporter, answered: Callable[[Reply], None]) -> None:
        self._target = target
        self._keys = keys
        self._report = report
        self._answered = answered
        self._lock = threading.Lock()
        self._next: Optional[Ask] = None
        self._thread: Optional[threading.Thread] = None
        self._over = threading.Event()

    def want(self, ask: Ask) -> None:
        """Ask this as soon as the one on its way is answered."""
        with self._lock:
            self._next = ask
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="vigil-token", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._over.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the thread's end."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._lock:
                ask, self._next = self._next, None
                if ask is None or self._over.is_set():
                    self._thread = None
                    return
            if self._over.wait(ask.delay_s):
                continue
            try:
                self._ask(ask)
            except Exception as error:
                self._report.trouble(f"a completion failed: {type(error).__name__}: {error}")

    def _ask(self, ask: Ask) -> None:
        key = self._keys.key()
        begun = time.monotonic()
        reply = Reply(error="other")
        for path in ask.paths:
            left = begun + ask.timeout_s - time.monotonic()
            answer = exchange(self._target, "POST", path, max(left, 0.0), body=request_body(path, ask), key=key)
            if reply.status == 400 and answer.status in _NOT_HERE:  # noqa: PLR2004
                break  # the refusal says more than the path that is not there
            reply = answer
            wrong_form = reply.status == 400 and "chat" not in path  # noqa: PLR2004 - a chat-only model refuses plain text
            if reply.status not in _NOT_HERE and not wrong_form:
                break
        if self._over.is_set():
            return
        self._answered(reply)
        self._tell(ask, reply, keyed=key is not None)

    def _tell(self, ask: Ask, reply: Reply, *, keyed: bool) -> None:
        good = reply.status is not None and 200 <= reply.status < 300  # noqa: PLR2004
        tokens = count_tokens(reply.body) if good else None
        body = "" if tokens is not None else reply.body[: BODY_CHARS * 4].decode("utf-8", "replace")
        self._report.say(
            "TokenAnswered",
            status=reply.status,
            error=reply.error,
            tokens=tokens,
            latency_s=round(reply.latency_s, 6),
            model=self._report.shorten(ask.model, 200),
            body=self._report.shorten(body, BODY_CHARS),
            keyed=keyed,
        )
