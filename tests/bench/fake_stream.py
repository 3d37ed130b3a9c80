"""Starts the streaming fake for a test, and asks it what it saw."""

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FAKE = Path(__file__).resolve().parents[1] / "fakes" / "stream.py"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Fake:
    """A fake that runs."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port, self.process = port, process
        self.url = f"http://127.0.0.1:{port}"

    def seen(self) -> dict[str, Any]:
        """Return what it saw: requests, their times, the most that ran at once, tokens."""
        with urllib.request.urlopen(f"{self.url}/fake/seen", timeout=10) as answer:  # noqa: S310 - our own
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def fake(*flags: str) -> Iterator[Fake]:
    """Run a fake with these flags."""
    port = free_port()
    command = [sys.executable, str(FAKE), "--port", str(port), *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "listening" in process.stdout.readline()
            yield Fake(port, process)
        finally:
            process.kill()
