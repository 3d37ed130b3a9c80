"""The streaming fake at a known pace, for benches: it keeps when each request had come and when its tokens went out."""

import json
import socket
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FAKE = Path(__file__).parents[1] / "tests" / "fakes" / "stream.py"


@contextmanager
def fake(*flags: str) -> Iterator[str]:
    """Run the fake; give its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, str(FAKE), "--port", str(port), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - opened with a pipe
        process.stdout.readline()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def truth(url: str, requests: int) -> dict[str, float]:
    """Return the figures of the latest requests as the fake kept them, by vLLM's names: from a request's last byte on."""
    with urllib.request.urlopen(f"{url}/fake/seen", timeout=10) as answer:  # noqa: S310 - our own
        answers = sorted(json.load(answer)["answers"])[-requests:]
    of = {
        "ttft": [first - came for came, first, _, _ in answers],
        "tpot": [(last - first) / (tokens - 1) for _, first, last, tokens in answers if tokens > 1],
        "e2el": [last - came for came, _, last, _ in answers],
    }
    means = {f"mean_{name}_ms": statistics.fmean(some) * 1000 for name, some in of.items()}
    medians = {f"median_{name}_ms": statistics.median(some) * 1000 for name, some in of.items()}
    lasted_s = max(last for _, _, last, _ in answers) - min(came for came, _, _, _ in answers)
    return {**means, **medians, "output_throughput": sum(tokens for *_, tokens in answers) / lasted_s}
