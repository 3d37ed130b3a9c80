"""What an answer amounts to: its events put into the reply, and its end judged."""

import contextlib
import os
import time
from collections.abc import Callable

import msgspec

from vigil.bench.events import Event, body_error, brings_text, decode, error_in
from vigil.bench.reply import Failure, Reply
from vigil.bench.wire import Connection
from vigil.screen import hide_secrets, plain

DETAIL_CHARS = 300
_DONE = b"[DONE]"
_OK, _THROTTLED = 200, (429, 503)
_SERVER_FAULT = 500


class Reader:
    """Reads the events of one answer into its reply."""

    __slots__ = ("_hear", "_reply")

    def __init__(self, reply: Reply, hear: Callable[[float], None] | None) -> None:
        self._reply, self._hear = reply, hear

    def take(self, data: bytes) -> None:
        """Take one event."""
        if data == _DONE:
            return
        reply = self._reply
        reply.streamed = True
        try:
            event = decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            fail(reply, Failure.GARBLED, f"an event that is none: {error}")
            return
        note(reply, event, self._hear)


def note(reply: Reply, event: Event, hear: Callable[[float], None] | None = None) -> None:
    """Put what an event says into the reply."""
    if event.choices:
        now_s = time.perf_counter()
        choice = event.choices[0]
        reply.last_s = now_s
        if brings_text(choice):
            reply.arrivals.append(now_s)
            if hear is not None:
                hear(now_s)
        if choice.finish_reason is not None:
            reply.finish = choice.finish_reason
    usage = event.usage
    if usage is not None:
        reply.input_tokens = max(0, usage.prompt_tokens or 0)
        if usage.completion_tokens is not None:
            reply.output_tokens = max(0, usage.completion_tokens)
        if usage.prompt_tokens_details is not None:
            reply.cached_tokens = usage.prompt_tokens_details.cached_tokens
    trouble = error_in(event)
    if trouble is not None:
        fail(reply, Failure.BROKEN, trouble)


def conclude(connection: Connection, reply: Reply) -> None:
    """Say what an answer that has ended amounts to."""
    if not settle(connection, reply):
        return
    assert connection.head is not None  # noqa: S101 - it was settled
    if not connection.head.event_stream:
        read_whole(bytes(connection.body), reply)
    if reply.failure is not None:
        return
    if not reply.arrivals and not reply.output_tokens:
        fail(reply, Failure.EMPTY, "200, and not a token")
    elif reply.output_tokens is None:
        fail(reply, Failure.UNCOUNTED, "the answer has no usage")


def settle(connection: Connection, reply: Reply) -> bool:
    """Note the status of an answer that has ended; say whether it is a good one, whose body is worth reading."""
    head = connection.head
    if head is not None:
        reply.status = head.status
        if head.retry_after is not None:
            with contextlib.suppress(ValueError):
                reply.retry_after_s = max(0.0, float(head.retry_after))
    if reply.failure is not None or head is None:
        return False
    if head.status != _OK:
        fail(reply, refusal(head.status), f"{head.status}: {body_error(bytes(connection.body[:65536]))}")
    return reply.failure is None


def refusal(status: int) -> Failure:
    """Return the kind of failure that a status is."""
    if status in _THROTTLED:
        return Failure.THROTTLED
    return Failure.BROKEN if status >= _SERVER_FAULT else Failure.REFUSED


def read_whole(body: bytes, reply: Reply) -> None:
    """Read an answer that was not streamed."""
    try:
        event = decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        fail(reply, Failure.GARBLED, f"an answer that is none: {error}")
        return
    note(reply, event)


def fail(reply: Reply, failure: Failure, why: str) -> None:
    """Note the first failure of a request; what follows from it says less."""
    if reply.failure is None:
        reply.failure, reply.detail = failure, shown(why)


def why(error: OSError) -> str:
    """Return an error in the system's own words; asyncio puts addresses in their place."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def shown(text: str) -> str:
    """Return text of a server's, safe to keep and to show."""
    return plain(hide_secrets(" ".join(text.split())), DETAIL_CHARS)
