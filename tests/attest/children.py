"""Python children with the attester in them, as the launcher puts it there, and a way to ask them."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vigil.attest import attester_texts
from vigil.observer.attesters import Answer, ask

PATIENCE_S = 20.0
FILES = attester_texts()


def until(look: Callable[[], Any], what: str) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited in vain for {what}")


class Nursery:
    """Starts children; each says "ready" on its output once it got that far, and ends when its input does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.sockets = folder / "sockets"
        self.work = folder / "work"
        for one in (self.home, self.sockets, self.work):
            one.mkdir(mode=0o700)
        for name, text in FILES.items():
            (self.home / name).write_text(text)
        self.running: list[subprocess.Popen[str]] = []

    def module(self, name: str, text: str = "") -> Path:
        """Write a module that children can import."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def env(self, of: str = "*", behind: tuple[Path, ...] = ()) -> dict[str, str]:
        paths = os.pathsep.join(str(one) for one in (self.home, *behind, self.work))
        given = {"PYTHONPATH": paths, "VIGIL_ATTEST": str(self.sockets), "VIGIL_ATTEST_OF": of}
        return {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **given}

    def run(self, code: str, *options: str, **env: Any) -> subprocess.CompletedProcess[str]:
        """Run a child to its end."""
        return subprocess.run(
            [sys.executable, *options, "-c", code],
            env=self.env(**env),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def start(self, code: str, *options: str, python: str = sys.executable, **env: Any) -> "subprocess.Popen[str]":
        """Start a child and wait until it says that it is ready."""
        script = self.work / f"child{len(self.running)}.py"
        script.write_text(f"{code}\nprint('ready', flush=True)\nimport sys\nsys.stdin.read()\n")
        child = subprocess.Popen(
            [python, *options, str(script)],
            env=self.env(**env),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running.append(child)
        assert child.stdout
        assert child.stdout.readline().strip() == "ready"
        return child

    def ask(self, patience_s: float = 3.0, **request: Any) -> list[Answer]:
        return ask(str(self.sockets), request, patience_s)

    def answers(self, count: int, **request: Any) -> list[Answer]:
        """Ask until so many answer: a thread may need a moment to open its door."""
        return until(lambda: found if len(found := self.ask(**request)) == count else None, f"{count} answers")

    def close(self) -> None:
        for answer in self.ask(0.5):  # children of children, which hold our pipes
            with contextlib.suppress(OSError):
                os.kill(answer.pid, 9)
        for child in self.running:
            child.kill()
            child.communicate()
