"""Measure how many facts a second `vigil replay` takes in, decoding included.

    PYTHONPATH=packages/vigil/src python bench/replay_speed.py [FACTS]

The trace is made of real log text (tests/data/logs): a server that starts, serves and dies, twenty times over, watched as an
observer would: ticks, samples, one to five log lines at a time, probes, counters. Half of it is start-up, half is serving.
Prints medians of five runs, by the clock and by CPU time (the same where nothing else runs); keeps them, with the machine,
its load and the date, in docs/results/replay.json.
"""

import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench_figures import load, machine
from vigil import facts
from vigil.plan import Plan
from vigil.supervise.replay import replay
from vigil.trace import Header, Writer

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "tests" / "data" / "logs"
STARTS = {"sglang": LOGS / "sglang-h200" / "e1_base.log", "vllm": LOGS / "vllm-cpu" / "ok-eager.log"}
COMMANDS = {
    "sglang": ("python", "-m", "sglang.launch_server", "--model-path", "m", "--port", "30000"),
    "vllm": ("vllm", "serve", "m", "--port", "30000"),
}
LIVES = 20
RUNS = 5
WANTED_PER_S = 100_000
STARTING = {facts.Ticked: 25, facts.Sampled: 25, facts.LogGrew: 42, facts.ProbeAnswered: 8}
SERVING = {
    facts.Ticked: 30,
    facts.Sampled: 20,
    facts.LogGrew: 25,
    facts.MetricsSeen: 15,
    facts.ProbeAnswered: 8,
    facts.TokenAnswered: 2,
}


class Life:
    """One server's facts, in order of time."""

    def __init__(self, rng: random.Random, lines: list[str]) -> None:
        self.rng = rng
        self.lines = itertools.cycle(lines)
        self.at_s = self.cpu_s = 0.0
        self.number = self.size = self.io = self.tokens = 0

    def next(self, kind: type[facts.Fact]) -> facts.Fact:
        """Return one more fact of a kind."""
        self.at_s = round(self.at_s + self.rng.uniform(0.01, 0.4), 6)
        at_s = self.at_s
        if kind is facts.Ticked:
            return facts.Ticked(at_s=at_s, wall_s=1.79e9 + at_s)
        if kind is facts.Sampled:
            self.cpu_s += self.rng.uniform(0, 2)
            self.io += self.rng.choice((0, 0, 4 << 20))
            rss = (8 << 30) + self.rng.randrange(4 << 20)
            return facts.Sampled(
                at_s=at_s, cpu_s=round(self.cpu_s, 3), io_bytes=self.io, rss_bytes=rss, processes=11, gpu_bytes=70 << 30
            )
        if kind is facts.ProbeAnswered:
            return facts.ProbeAnswered(
                at_s=at_s, probe="health", status=self.rng.choice((503, 503, None)), repeats=20, latency_s=0.002
            )
        if kind is facts.MetricsSeen:
            self.tokens += self.rng.randrange(2000)
            return facts.MetricsSeen(at_s=at_s, running=8.0, waiting=1.0, tokens_total=float(self.tokens))
        if kind is facts.TokenAnswered:
            return facts.TokenAnswered(
                at_s=at_s, status=200, tokens=1, latency_s=0.1, model="m", body='{"id": "cmpl-1"}'
            )
        return self._log(at_s)

    def _log(self, at_s: float) -> facts.LogGrew:
        texts = list(itertools.islice(self.lines, self.rng.randint(1, 5)))
        lines = tuple(facts.Line(self.number + n, text) for n, text in enumerate(texts, 1))
        self.number += len(texts)
        self.size += sum(len(text) + 1 for text in texts)
        return facts.LogGrew(at_s=at_s, size=self.size, lines=lines)


def make_trace(engine: str, count: int) -> Iterator[facts.Fact]:
    """Yield `count` facts of one server under a wrapper that starts it again and again."""
    rng = random.Random(7)
    text = STARTS[engine].read_text("utf-8", "replace")
    life = Life(rng, [line for line in text.split("\n") if line.strip()])
    yield facts.Reached(at_s=0.0, boot_id="b", host="h", python="3.11.2", wall_s=1.79e9)
    each = count // LIVES // 2
    for number in range(LIVES):
        pid = 1000 + number
        yield facts.MainStarted(
            at_s=life.at_s, pid=pid, start_ticks=pid, argv=COMMANDS[engine], wrapped=True, sure=True
        )
        yield from (life.next(kind) for kind in rng.choices(list(STARTING), list(STARTING.values()), k=each - 3))
        yield facts.PortOpened(at_s=life.at_s, port=30000, owner="ours", pid=pid, name="python")
        yield facts.ProbeAnswered(at_s=life.at_s, probe="models", status=200, models=("m",))
        yield life.next(facts.TokenAnswered)
        yield from (life.next(kind) for kind in rng.choices(list(SERVING), list(SERVING.values()), k=each - 1))
        yield facts.MainExited(at_s=life.at_s, pid=pid)


def measure(engine: str, count: int) -> dict[str, object]:
    """Write a trace, replay it, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        writer = Writer(path, Header(plan=Plan(command=COMMANDS[engine])))
        kinds: Counter[str] = Counter()
        for fact in make_trace(engine, count):
            writer.add(fact)
            kinds[type(fact).__name__] += 1
        writer.close()
        total = sum(kinds.values())
        rates, busy_rates = [], []
        for _ in range(RUNS):
            begun, begun_busy = time.perf_counter(), time.process_time()
            verdicts = sum(1 for _ in replay(path))
            rates.append(total / (time.perf_counter() - begun))
            busy_rates.append(total / (time.process_time() - begun_busy))
        return {
            "engine": engine,
            "facts": total,
            "kinds": dict(kinds),
            "bytes": path.stat().st_size,
            "verdicts": verdicts,
            "facts_per_s": round(statistics.median(rates)),
            "slowest_per_s": round(min(rates)),
            "fastest_per_s": round(max(rates)),
            "facts_per_cpu_s": round(statistics.median(busy_rates)),
            "rates_per_s": [round(rate) for rate in rates],
        }


def keep(count: int) -> dict[str, Any]:
    """Measure all, keep the figures in docs/results/replay.json and return them."""
    before = load()
    kept = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "machine": {**machine(), "msgspec": msgspec.__version__},
        "wanted_per_s": WANTED_PER_S,
        "load": before,
        "runs": RUNS,
        "rows": [measure(engine, count) for engine in STARTS],
    }
    target = ROOT / "docs" / "results" / "replay.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(kept, indent=1) + "\n")
    return kept


def main() -> None:
    words = "{engine:8} {facts} facts: {facts_per_s} a second ({slowest_per_s} to {fastest_per_s}), {facts_per_cpu_s} of CPU"
    for row in keep(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)["rows"]:
        print(words.format(**row))


if __name__ == "__main__":
    main()
