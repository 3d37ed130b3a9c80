"""Start a server and wait for it with inferlint's own functions, as its `xray --serve` does; print one JSON object.

Runs in inferlint's environment (0.3.1). xray itself wants a load to run and a GPU to be free; what is measured here
is the part before that: `_start_server`, `_wait_ready` (/health and "Application startup complete" in the log, each
2 s), on a failure `check_boot_failure` on the log, and else `probe` (one request, eight at once, /health again). Both
have longer limits of their own (900 s and 300 s): the budget given here ends them.

Usage: ask_inferlint.py BUDGET_S URL LOG COMMAND...
"""

import json
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import Any

from inferlint.checks import check_boot_failure
from inferlint.probe import probe
from inferlint.xray import _start_server, _wait_ready


def say(answer: str, text: str) -> None:
    """Print the verdict, with the time at which it was reached."""
    print(json.dumps({"answer": answer, "text": text, "at_unix_s": time.time()}), flush=True)


def probe_within(url: str, limit_s: float) -> Any | None:
    """Return what the probe said, or None where it was still asking when the budget ended."""
    said: list[Any] = []
    asking = threading.Thread(target=lambda: said.append(probe(url, timeout=300.0)), daemon=True)
    asking.start()
    asking.join(limit_s)
    return said[0] if said else None


def main() -> None:
    """Play xray's first steps on the command given."""
    budget_s, url, log = float(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    began = time.monotonic()
    server = _start_server(shlex.join(sys.argv[4:]), log)
    problem = _wait_ready(server, log, url, budget_s)
    if problem is not None:
        boot = check_boot_failure(log.read_text(encoding="utf-8", errors="replace"))
        answer = "failed" if "exited" in problem else "timed out"
        say(answer, f"{problem}; {boot.status.value}: {boot.message}")
        return
    result = probe_within(url, budget_s - (time.monotonic() - began))
    if result is None:
        say("timed out", "ready by log and /health; probe still asking at the end")
    elif result.status.value.lower() == "pass":
        say("ready", result.message)
    else:
        say("failed", f"probe: {result.message}")


if __name__ == "__main__":
    main()
