"""Start a server and wait for it with polyserve's own class, as its supervisor does; print one JSON object.

Runs in polyserve's environment (0.1.0). `Process.start` and `Process.wait_ready` are what every launch of polyserve
goes through: any answer below 500 on /health is ready, an exit ends the wait, asked each second. Its own limit is
900 s.

Usage: ask_polyserve.py BUDGET_S URL LOG COMMAND...
"""

import json
import logging
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from polyserve.backends.base import LaunchSpec, Process


class LastWords(logging.Handler):
    """Keeps the last message that polyserve logged: the reason it gives is only there."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the message."""
        self.text = record.getMessage()


def main() -> None:
    """Launch the command given and wait for it."""
    budget_s, url, log = float(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    words = LastWords()
    logging.getLogger("polyserve").addHandler(words)
    server = Process(LaunchSpec(args=sys.argv[4:]), urlsplit(url).port or 80, f"{url}/health", log_path=log).start()
    ready = server.wait_ready(timeout=budget_s)
    at_unix_s = time.time()
    answer = "ready" if ready else "failed" if not server.alive() else "timed out"
    text = "ready" if ready else words.text.split("; see")[0]
    print(json.dumps({"answer": answer, "text": text, "at_unix_s": at_unix_s}), flush=True)


if __name__ == "__main__":
    main()
