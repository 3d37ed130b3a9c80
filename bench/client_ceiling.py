"""Measure how much the load generator's client can take, beside other clients, against a fake server at a known pace.

    bash bench/peers/install.sh; .venv/bin/python bench/client_ceiling.py

The fake (tests/fakes/stream.py) gives each of N open requests a token each step, so that it offers N / step tokens a second: as
much as is wanted (20,000 with 1,000 open requests), and more. Each client runs in a process of its own, one after another,
round after round; every event is decoded, timed and counted in each of them. *tokens/s*: what came; *cpu share*: of one core;
*tokens per cpu s*: what one whole core would take, which a busy machine leaves nearly as it is. *ratio*: ours over it, median of
the rounds. The last rows: whether the figures are right, with the counts and paces that the fake knows. Kept in
docs/results/client.json. Whole load generators are measured by tool_ceilings.py.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench_figures import load, machine
from paced import fake
from vigil.bench.client import client_of, place_of
from vigil.bench.pulse import Heart
from vigil.bench.reply import Limits, Reply

ROOT = Path(__file__).parents[1]
PEER = ROOT / "bench" / "peers" / "stream_clients.py"
PEERS = Path(os.environ.get("VIGIL_PEERS") or ROOT / ".peers") / "clients" / "bin" / "python"
CLIENTS = ("vigil", "streams", "aiohttp", "httpx")
LOADS = ((100, 0.02), (1000, 0.05), (1000, 0.02))
WANTED_PER_S, WANTED_OPEN = 20_000, 1_000
STEPS = 150
ROUNDS = 3


async def ours(url: str, opened: int, tokens: int) -> dict[str, Any]:
    """Stream with our client."""
    body = {"model": "m", "prompt": "one two three", "stream": True, "stream_options": {"include_usage": True}}
    data = json.dumps({**body, "max_tokens": tokens}).encode()
    heart = Heart()
    beating = asyncio.create_task(heart.beat())
    cpu_s, began_s = time.process_time(), time.perf_counter()
    async with client_of(place_of(url), Limits()) as client:
        replies: list[Reply] = await asyncio.gather(*(client.ask("/v1/completions", data) for _ in range(opened)))
    ended_s, cpu_s = time.perf_counter(), time.process_time() - cpu_s
    beating.cancel()
    return {
        "answers": sum(1 for one in replies if one.failure is None),
        "tokens": sum(one.output_tokens or 0 for one in replies),
        "events": sum(len(one.arrivals) for one in replies),
        "wall_s": ended_s - began_s,
        "cpu_s": cpu_s,
        "lag_p99_ms": heart.pulse(began_s, ended_s).lag_p99_s * 1000,
    }


def streamed(client: str, opened: int, step_s: float) -> dict[str, Any]:
    """Run one client in a process of its own against a fresh fake."""
    with fake("--step", str(step_s)) as url:
        words = [str(PEERS), str(PEER), client] if client != "vigil" else [sys.executable, __file__, "--one"]
        done = subprocess.run(
            [*words, url, str(opened), str(STEPS)], capture_output=True, text=True, check=True, timeout=300
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(rounds: int) -> list[dict[str, Any]]:
    """Measure every client at every load, round after round."""
    seen: dict[tuple[int, float, str], list[dict[str, Any]]] = {}
    for number in range(rounds):
        for opened, step_s in LOADS:
            for client in CLIENTS if number % 2 == 0 else reversed(CLIENTS):
                found = streamed(client, opened, step_s)
                print(
                    f"round {number + 1}: {opened} open, {opened / step_s:,.0f} offered: {client} {found}", flush=True
                )
                seen.setdefault((opened, step_s, client), []).append(found)
    return [row(*key, some, seen[(*key[:2], "vigil")]) for key, some in seen.items()]


def row(
    opened: int, step_s: float, client: str, some: list[dict[str, Any]], vigil: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return one client at one load."""

    def mid(value: Any) -> float:
        return statistics.median(map(value, some))

    ratios = [
        our["tokens"] / our["cpu_s"] / (one["tokens"] / one["cpu_s"]) for our, one in zip(vigil, some, strict=True)
    ]
    found = {
        "client": client,
        "open": opened,
        "offered/s": round(opened / step_s),
        "tokens/s": round(mid(lambda one: one["tokens"] / one["wall_s"])),
        "cpu share": round(mid(lambda one: one["cpu_s"] / one["wall_s"]), 3),
        "tokens per cpu s": round(mid(lambda one: one["tokens"] / one["cpu_s"])),
        "ratio": round(statistics.median(ratios), 2),
        "answers": f"{min(one['answers'] for one in some)} of {opened}",
    }
    if client == "vigil":
        found["lag p99 ms"] = round(mid(lambda one: one["lag_p99_ms"]), 1)
        if opened >= WANTED_OPEN:
            enough = found["tokens per cpu s"] >= WANTED_PER_S and all(one["answers"] == opened for one in some)
            found["target"] = f"{WANTED_PER_S} on one core: {'yes' if enough else 'NO'}"
    return found


def main() -> None:
    """Measure, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("URL", "OPEN", "TOKENS"), help="run our client alone")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(asyncio.run(ours(asked.one[0], int(asked.one[1]), int(asked.one[2])))))
        return
    told = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
        "machine": machine(),
        "load": load(),
        "rounds": asked.rounds,
        "rows": rows_of(asked.rounds),
    }
    told["load after"] = load()
    path = ROOT / "docs" / "results" / "client.json"
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told["rows"], indent=1))


if __name__ == "__main__":
    main()
