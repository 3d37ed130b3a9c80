"""The streaming client against a server that streams, and against one that misbehaves in every way we know."""

import asyncio
import json
import resource
from collections.abc import Coroutine
from typing import Any

import pytest
from fake_stream import fake

from vigil.bench.client import client_of, place_of
from vigil.bench.reply import Failure, Limits, Reply

SHORT = Limits(silence_s=0.6, connect_s=2.0)


def body(tokens: int = 12, **more: Any) -> bytes:
    asked = {"model": "m", "prompt": "one two three", "max_tokens": tokens, "stream": True, **more}
    return json.dumps({**asked, "stream_options": {"include_usage": True}}).encode()


def ask(url: str, *bodies: bytes, limits: Limits = SHORT, path: str = "/v1/completions") -> list[Reply]:
    async def go() -> list[Reply]:
        async with client_of(place_of(url), limits) as client:
            return [await client.ask(path, one) for one in bodies]

    return run(go())


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.mark.parametrize("shape", ["vllm", "sglang", "llamacpp"])
def test_client_counts_tokens_as_the_server_does_and_not_by_events(shape: str) -> None:
    with fake("--shape", shape, "--tokens-a-step", "3", "--step", "0.002") as server:
        reply = ask(server.url, body(12))[0]

    assert (reply.failure, reply.output_tokens, reply.input_tokens, reply.finish) == (None, 12, 5, "length")
    assert len(reply.arrivals) == 4
    assert reply.tpot_s == pytest.approx((reply.last_s - reply.arrivals[0]) / 11)


def test_client_reads_chat_and_leaves_roles_uncounted() -> None:
    with fake("--step", "0.002") as server:
        asked = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "stream": True}
        counted = json.dumps({**asked, "stream_options": {"include_usage": True}}).encode()
        reply = ask(server.url, counted, path="/v1/chat/completions")[0]

    assert (reply.failure, reply.output_tokens, len(reply.arrivals)) == (None, 5, 5)


def test_client_uses_a_connection_again() -> None:
    async def go(url: str) -> int:
        async with client_of(place_of(url), SHORT) as client:
            for _ in range(3):
                await client.ask("/v1/completions", body(2))
            return len(client._idle)

    with fake("--step", "0.002") as server:
        assert run(go(server.url)) == 1


@pytest.mark.parametrize(
    ("fault", "failure", "words"),
    [
        ("hang", Failure.SILENT, "not a byte for 0.6 s"),
        ("hang-midway", Failure.SILENT, None),
        ("empty", Failure.EMPTY, "200, and not a token"),
        ("drop", Failure.DROPPED, "the connection ended"),
        ("garbage", Failure.GARBLED, "no HTTP"),
        ("not-json", Failure.GARBLED, "an event that is none"),
        ("error-event", Failure.BROKEN, "the engine died"),
        ("uncounted", Failure.UNCOUNTED, "the answer has no usage"),
        ("unavailable", Failure.THROTTLED, "503: no slot available"),
        ("fail", Failure.BROKEN, "500: EngineCore encountered an issue."),
        ("refuse", Failure.REFUSED, "400: ignore_eos is not known"),
    ],
)
def test_client_names_what_went_wrong(fault: str, failure: Failure, words: str | None) -> None:
    with fake("--fault", fault, "--step", "0.002") as server:
        reply = ask(server.url, body(12))[0]

    assert reply.failure is failure
    if words is not None:
        assert words in reply.detail


def test_client_takes_an_answer_that_was_not_streamed() -> None:
    with fake("--fault", "unstreamed") as server:
        reply = ask(server.url, body(7))[0]

    assert (reply.failure, reply.output_tokens, reply.streamed, reply.tpot_s) == (None, 7, False, None)


def test_client_hears_when_to_come_back() -> None:
    with fake("--fault", "throttle", "--fault-always") as server:
        reply = ask(server.url, body())[0]

    assert (reply.failure, reply.status, reply.retry_after_s) == (Failure.THROTTLED, 429, 0.05)


@pytest.mark.parametrize("fault", ["flood", "flood-line"])
def test_client_gives_up_on_a_gigabyte_and_keeps_none_of_it(fault: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with fake("--fault", fault) as server:
        reply = ask(server.url, body(), limits=Limits(reply_bytes=8 << 20))[0]
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert reply.failure is Failure.FLOODED
    assert grown_kib < 64 << 10


def test_client_says_that_nobody_is_there() -> None:
    with fake() as server:
        url = server.url
    reply = ask(url, body())[0]

    assert (reply.failure, reply.detail) == (Failure.UNREACHABLE, "Connection refused")


def test_client_keeps_a_key_out_of_what_it_shows() -> None:
    async def go(url: str) -> Reply:
        async with client_of(place_of(url, "sk-secret-4711-abcdef"), SHORT) as client:
            return await client.ask("/v1/completions", b'{"prompt": "sk-secret-4711-abcdef"}')

    with fake("--fault", "refuse") as server:
        assert "4711" not in run(go(server.url)).detail
