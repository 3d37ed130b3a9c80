"""The fake's log: stamped lines and progress bars, to standard output or to a file that may come late."""

import os
import threading
import time
from typing import Any

from styles import Step, Style, bar


class Talk:
    """Writes whole lines with one system call each. `muted`: not a byte any more."""

    def __init__(self, style: Style, options: Any) -> None:
        self.style = style
        self.muted = False
        self.facts: dict[str, Any] = {
            "model": options.served, "draft": options.draft, "host": options.host,
            "port": options.port, "pid": os.getpid(), "flag": "",
        }  # fmt: skip
        self._fd = 1
        self._held: list[bytes] | None = None
        self._lock = threading.Lock()
        if options.log_file:
            self._held = []
            opener = threading.Timer(options.log_late, self._open, [options.log_file])
            opener.daemon = True
            opener.start()

    def _open(self, path: str) -> None:
        with self._lock:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            held, self._held = self._held or [], None
            os.write(self._fd, b"".join(held))

    def line(self, text: str, **facts: Any) -> None:
        """Write one line; `{model}` and the like are filled in."""
        self.raw((self.style.stamp(text.format(**{**self.facts, **facts})) + "\n").encode())

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        if self.muted:
            return
        with self._lock:
            if self._held is not None:
                self._held.append(data)
            else:
                os.write(self._fd, data)

    def death(self, kind: str, **facts: Any) -> None:
        """Write the last words of a death of this kind, if the style has any."""
        for text in self.style.deaths.get(kind, ()):
            self.line(text, **facts)


class Bar:
    """The tqdm bar of a step, redrawn in place with a carriage return."""

    def __init__(self, talk: Talk, step: Step) -> None:
        self._talk, self._step, self._born = talk, step, time.monotonic()
        talk.raw(b"\n")
        self.draw(0)

    def draw(self, done: int) -> None:
        """Show `done` shards; the last one ends the line."""
        step = self._step
        text = bar(step.bar, done, step.shards, time.monotonic() - self._born, blocks=step.blocks)
        self._talk.raw(f"\r{text}{chr(10) if done == step.shards else ''}".encode())
