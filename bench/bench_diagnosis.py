"""Measures how long a diagnosis of 3,000 lines takes: kept logs repeated to that length, and lines meant to be slow.

Usage: PYTHONPATH=packages/vigil/src:tests python bench/bench_diagnosis.py

A verdict has 50 ms for it (a death is to be told at once). Prints the best of seven runs, in milliseconds.
"""

import time
from collections.abc import Callable

from diagnosis.lives import engine_of, kept_logs, name_of, read_lines
from vigil.diagnosis import End, examine
from vigil.engine_table import EngineTable
from vigil.engines import table
from vigil.facts import Line

LINES = 3000
RUNS = 7
LOGS = ("sglang/e3_ngram", "sglang/unknown-flag", "vllm/truncated-safetensors", "vllm/slow-compile-sigterm")
HOSTILE = {
    "errors": "RuntimeError: x",
    "assertions": "AssertionError",
    "heads of tracebacks": "Traceback (most recent call last):",
    "frames": '  File "eagle_worker_v2.py", line 3',
    "many words of rules": "ggml: GGML_ASSERT(x) failed cudaMalloc failed: out of memory eval time = 1 ms / 300 tokens",
    "long lines": "RuntimeError: " + "Cannot be " * 90,
    "health answers": 'INFO: 1 - "GET /health HTTP/1.1" 503 x',
}


def numbered(texts: list[str]) -> list[Line]:
    repeated = texts * (LINES // len(texts) + 1)
    return [Line(number, text) for number, text in enumerate(repeated[:LINES], 1)]


def best_ms(run: Callable[[], object]) -> float:
    took: list[float] = []
    for _ in range(RUNS):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return min(took) * 1000


def measure(name: str, lines: list[Line], described: EngineTable | None) -> None:
    took = best_ms(lambda: examine(lines, End(code=1), described))
    print(f"{took:8.1f} ms  {LINES / took:6.0f} lines/ms  {name}")


def main() -> None:
    for path in kept_logs():
        if name_of(path) in LOGS:
            measure(
                name_of(path), numbered([line.text for line in read_lines(path)]), table(engine_of(path) or "generic")
            )
    for name, text in HOSTILE.items():
        measure(name, numbered([text]), table("sglang"))


if __name__ == "__main__":
    main()
