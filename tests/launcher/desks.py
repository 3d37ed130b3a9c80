"""A desk with a state folder of its own, and a look at every process that came from it."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vigil.hosts.bundle import LOADER, program

PATIENCE_S = 20.0
TOKEN = "VIGIL_TEST_TOKEN"


class RefusedError(Exception):
    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def wait_for(fact: Callable[[], Any], what: str = "a fact") -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} never came true"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False


class Host:
    """Runs the desk as a reach does: text over standard input, one process an answer."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.folder = folder
        self.token = secrets.token_hex(8)
        self.env = {**os.environ, "XDG_STATE_HOME": str(self.state), TOKEN: self.token}
        self.python = [sys.executable]
        self.before: list[str] = []

    def open(self, verb: str, **args: Any) -> "subprocess.Popen[bytes]":
        command = [*self.before, *self.python, "-I", "-S", "-c", LOADER]
        request = program("launcher", "desk", json.dumps({"verb": verb, "args": args}), (("survey", "snapshot"),))
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
            cwd=self.folder,
        )
        assert process.stdin
        process.stdin.write(request)
        process.stdin.flush()
        return process

    def read(self, process: "subprocess.Popen[bytes]") -> dict[str, Any]:
        out, err = process.communicate(timeout=60)
        assert not err, err.decode()
        reply = json.loads(out.splitlines()[-1])  # `hold` says first that it holds
        if "refused" in reply:
            assert "\n" not in reply["text"]
            raise RefusedError(reply["refused"], reply["text"])
        value = reply["ok"]
        assert isinstance(value, dict)
        return value

    def ask(self, verb: str, **args: Any) -> dict[str, Any]:
        return self.read(self.open(verb, **args))

    @staticmethod
    def spec(*command: str, **fields: Any) -> dict[str, Any]:
        return {"name": "s1", "command": list(command), "plan": {"engine": "generic"}, **fields}

    def launch(self, *command: str, **fields: Any) -> dict[str, Any]:
        return self.ask("launch", spec=self.spec(*command, **fields))

    def run(self, code: str, **fields: Any) -> dict[str, Any]:
        return self.launch(sys.executable, "-I", "-S", "-c", code, **fields)

    def stop(self, name: str = "s1", grace_s: float = 5.0, by: str = "the test") -> dict[str, Any]:
        return self.ask("stop", name=name, grace_s=grace_s, by=by)

    def ended(self, started: dict[str, Any]) -> dict[str, Any]:
        """Wait until the launcher is gone; return what it wrote down."""
        wait_for(lambda: not alive(started["life"]["launcher"]["pid"]), "the launcher's end")
        end = json.loads((Path(started["folder"]) / "exit.json").read_text())
        assert isinstance(end, dict)
        return end

    def log(self, started: dict[str, Any]) -> str:
        return Path(started["life"]["log"]).read_text(errors="surrogateescape")

    def wait_log(self, started: dict[str, Any], text: str) -> str:
        wait_for(lambda: text in self.log(started), f"{text!r} in the log")
        return self.log(started)

    def processes(self) -> list[int]:
        """Everything that came from this desk and lives."""
        line = f"{TOKEN}={self.token}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if line in (folder / "environ").read_bytes().split(b"\0") and alive(int(folder.name)):
                    found.append(int(folder.name))
        return found

    def nothing_left(self) -> None:
        wait_for(lambda: not self.processes(), "the end of all processes")
