"""Stream answers with one HTTP client after the manner of public benchmarks, and print how much came and what it cost.

    python stream_clients.py CLIENT URL OPEN TOKENS

CLIENT: aiohttp, httpx or streams (asyncio's own). Each event is decoded by json, its time is kept, the counts are read: what any
client that measures must do. Prints one JSON object.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

BODY = {"model": "m", "prompt": "one two three", "stream": True, "stream_options": {"include_usage": True}}


class Tally:
    """What came so far."""

    def __init__(self) -> None:
        self.events = self.tokens = self.answers = 0
        self.times: list[float] = []

    def take(self, line: bytes) -> None:
        """Take one line of a stream."""
        if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
            return
        event = json.loads(line[5:])
        if event["choices"] and event["choices"][0].get("text"):
            self.events += 1
            self.times.append(time.perf_counter())
        if event.get("usage"):
            self.tokens += event["usage"]["completion_tokens"]
            self.answers += 1


async def with_aiohttp(url: str, body: dict[str, Any], opened: int, tally: Tally) -> None:
    """Ask with aiohttp, as vLLM's own benchmark does."""
    import aiohttp  # noqa: PLC0415 - in the environment of the peers alone

    async def one(session: aiohttp.ClientSession) -> None:
        async with session.post(url, json=body) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    tally.take(line)

    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        await asyncio.gather(*(one(session) for _ in range(opened)))


async def with_httpx(url: str, body: dict[str, Any], opened: int, tally: Tally) -> None:
    """Ask with httpx, as its documentation shows."""
    import httpx  # noqa: PLC0415 - in the environment of the peers alone

    async def one(client: httpx.AsyncClient) -> None:
        async with client.stream("POST", url, json=body) as answer:
            async for line in answer.aiter_lines():
                tally.take(line.encode())

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=None) as client:  # noqa: S113 - the run itself has a limit
        await asyncio.gather(*(one(client) for _ in range(opened)))


async def with_streams(url: str, body: dict[str, Any], opened: int, tally: Tally) -> None:
    """Ask with asyncio's streams and nothing else; chunk frames are lines that are no data."""
    parts = urlsplit(url)
    data = json.dumps(body).encode()
    head = f"POST {parts.path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode()

    async def lines() -> AsyncIterator[bytes]:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(head + data)
        while not (line := await reader.readline()).startswith(b"data: [DONE]") and line:
            yield line
        writer.close()

    async def one() -> None:
        async for line in lines():
            tally.take(line)

    await asyncio.gather(*(one() for _ in range(opened)))


CLIENTS = {"aiohttp": with_aiohttp, "httpx": with_httpx, "streams": with_streams}


def main() -> None:
    """Run one client."""
    name, url, opened, tokens = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    tally = Tally()
    body = {**BODY, "max_tokens": tokens}
    cpu_s, began_s = time.process_time(), time.perf_counter()
    asyncio.run(CLIENTS[name](f"{url}/v1/completions", body, opened, tally))
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    print(
        json.dumps(
            {"answers": tally.answers, "tokens": tally.tokens, "events": tally.events, "wall_s": wall_s, "cpu_s": cpu_s}
        )
    )


if __name__ == "__main__":
    main()
