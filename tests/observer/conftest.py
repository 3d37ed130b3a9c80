"""An observer in a thread, whose facts are read as the tool reads them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from vigil import facts
from vigil.observer.core import Observer

PATIENCE_S = 60.0
_DECODER = msgspec.json.Decoder(facts.AnyFact)


class Watching:
    """Runs one observer and keeps what it said. Every fact must be one that the tool can read."""

    def __init__(self) -> None:
        self.facts: list[Any] = []
        self._news = threading.Condition()
        self.observer = Observer(self._take)
        self._thread = threading.Thread(target=self.observer.run, daemon=True)
        self._thread.start()

    def _take(self, fact: dict[str, Any]) -> None:
        with self._news:
            try:
                self.facts.append(_DECODER.decode(msgspec.json.encode(fact)))
            except msgspec.ValidationError as error:
                self.facts.append(error)
            self._news.notify_all()

    def watch(self, **fields: Any) -> None:
        paces = {"log_s": 0.01, "tree_s": 0.05, "sample_s": 0.2}
        self.do("watch", **{"paces": paces, **fields})

    def do(self, what: str, **fields: Any) -> None:
        self.observer.submit({"do": what, **fields})

    def wait(self, kind: type, test: Callable[[Any], bool] = lambda _: True, *, after: Any = None) -> Any:
        """Return the first such fact (behind the fact `after`), waiting for it."""
        deadline = time.monotonic() + PATIENCE_S
        with self._news:
            seen = self.facts.index(after) + 1 if after is not None else 0
            while True:
                while seen < len(self.facts):
                    fact = self.facts[seen]
                    seen += 1
                    assert not isinstance(fact, Exception), fact
                    if isinstance(fact, kind) and test(fact):
                        return fact
                left = deadline - time.monotonic()
                assert left > 0, f"no {kind.__name__} in {self.shown()}"
                self._news.wait(left)

    def wait_line(self, text: str) -> facts.Line:
        """Return the first log line that holds `text`, waiting for it."""
        grew = self.wait(facts.LogGrew, lambda fact: any(text in line.text for line in fact.lines))
        return next(line for line in grew.lines if text in line.text)

    def all(self, kind: type) -> list[Any]:
        with self._news:
            return [fact for fact in self.facts if isinstance(fact, kind)]

    def lines(self) -> list[tuple[int, str]]:
        return [(line.number, line.text) for fact in self.all(facts.LogGrew) for line in fact.lines]

    def order(self, *some: Any) -> list[int]:
        return [self.facts.index(fact) for fact in some]

    def shown(self) -> list[Any]:
        return [fact for fact in self.facts if not isinstance(fact, facts.Ticked | facts.Sampled)][-40:]

    def end(self) -> None:
        self.observer.submit({"do": "quit"})
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        for fact in self.facts:
            assert not isinstance(fact, Exception), fact
        times = [fact.at_s for fact in self.facts]
        assert times == sorted(times)


@pytest.fixture
def watching() -> Iterator[Watching]:
    running = Watching()
    yield running
    running.end()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process in a session of its own; all of it ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(*command: str, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, start_new_session=True, **options)
        started.append(process)
        return process

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


@pytest.fixture
def python() -> str:
    return os.path.realpath(sys.executable)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture(scope="session")
def poll() -> Callable[[Callable[[], Any]], Any]:
    """Wait until a call returns something true, and return it."""

    def until(look: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            seen = look()
            if seen:
                return seen
            threading.Event().wait(0.005)
        raise AssertionError("waited in vain")

    return until
