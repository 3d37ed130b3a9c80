"""What whole load generators take: `vigil bench`, in one process and in two, beside vLLM's, SGLang's and AIPerf, on a fake.

    make engines; bash bench/peers/install-generators.sh; .venv/bin/python bench/tool_ceilings.py

The fake offers each of 1,000 open requests some tokens every step and keeps what it really gave. *true tokens/s*: that; *said*:
the tool's own figure; *off true*: by how much its latencies differ from what the fake kept of the same requests, which is what a
client at its limit adds (not for the first token: the fake itself takes a while to accept a thousand of them); *cpu s*: of the
tool with all its processes, less the least that a run of a few requests took, its start. Kept in docs/results/ceilings.json.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench_figures import load, machine
from generators import ROOT, TOOLS, Job, Tool, with_vigil
from paced import fake, truth

OPEN = 1000
FEW, SHORT = 8, 8
LATENCIES = ("mean_tpot_ms", "mean_e2el_ms")


class Offer(NamedTuple):
    """What the fake offers: `events` to each request in a step, which sent together cost it little more than one."""

    step_s: float
    events: int
    output: int
    ours_only: bool = False

    @property
    def per_s(self) -> float:
        """Tokens a second."""
        return OPEN * self.events / self.step_s


OFFERS = (Offer(0.05, 1, 200), Offer(0.05, 5, 400), Offer(0.05, 20, 1500, ours_only=True))


class Run(NamedTuple):
    """One run: what the tool said, what was true, and what it cost."""

    said: dict[str, Any]
    true: dict[str, float]
    cpu_s: float


def entrants(*, ours_only: bool) -> list[tuple[Tool, int]]:
    """Return who is measured: ours in one process and in two, and each other tool that is installed."""
    there = [(tool, 1) for tool in TOOLS if tool.program.exists() and (tool.measure is with_vigil or not ours_only)]
    return [(Tool("vigil --processes 2", with_vigil, TOOLS[0].program), 2), *there]


def ran(tool: Tool, job: Job) -> Run:
    """Run a tool once."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        said = tool.measure(job, Path(folder))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(said, truth(job.url, job.opened), cpu_s)


def rows(rounds: int) -> Iterator[dict[str, Any]]:
    """Measure each tool at each load, round after round; give a row for each."""
    starts: dict[str, float] = {}
    for offer in OFFERS:
        seen: dict[str, list[Run]] = {}
        failed: dict[str, str] = {}
        tools = entrants(ours_only=offer.ours_only)
        for number in range(rounds):
            for tool, processes in tools if number % 2 == 0 else reversed(tools):
                if tool.name in failed:
                    continue
                try:
                    with fake("--step", str(offer.step_s), "--events-a-step", str(offer.events)) as url:
                        start_cpu_s = ran(tool, Job(url, "m", FEW, FEW, -1, SHORT, processes)).cpu_s
                        starts[tool.name] = min(start_cpu_s, starts.get(tool.name, start_cpu_s))
                        found = ran(tool, Job(url, "m", OPEN, OPEN, number, offer.output, processes))
                except RuntimeError as error:
                    failed[tool.name] = str(error)
                    continue
                print(
                    f"round {number + 1}: {offer.per_s:,.0f} offered: {tool.name}: {found.said['output_throughput']:,.0f}"
                )
                seen.setdefault(tool.name, []).append(found)
        yield from (row(name, offer, some, starts[name]) for name, some in seen.items())
        yield from (
            {"tool": name, "open": OPEN, "offered/s": round(offer.per_s), "failed": why} for name, why in failed.items()
        )


def row(name: str, offer: Offer, some: list[Run], start_cpu_s: float) -> dict[str, Any]:
    """Return a tool at one load."""
    cpu_s = statistics.median(max(0.0, one.cpu_s - start_cpu_s) for one in some)
    off = {figure: statistics.median(one.said[figure] / one.true[figure] - 1 for one in some) for figure in LATENCIES}
    return {
        "tool": name,
        "open": OPEN,
        "offered/s": round(offer.per_s),
        "true tokens/s": round(statistics.median(one.true["output_throughput"] for one in some)),
        "said": round(statistics.median(one.said["output_throughput"] for one in some)),
        "cpu s": round(cpu_s, 2),
        "tokens per cpu s": round(OPEN * offer.output / cpu_s) if cpu_s else None,
        **{f"off true, {figure}": f"{value:+.0%}" for figure, value in off.items()},
    }


def main() -> None:
    """Measure, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "ceilings.json")
    asked = parser.parse_args()
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
        "machine": machine(),
        "load": load(),
        "rounds": asked.rounds,
        "not installed": ", ".join(tool.name for tool in TOOLS if not tool.program.exists()) or "none",
        "rows": list(rows(asked.rounds)),
    }
    told["load after"] = load()
    asked.out.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told["rows"], indent=1))


if __name__ == "__main__":
    main()
