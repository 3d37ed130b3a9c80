"""The real command line, each test with a state folder of its own; every process it leaves is ended by pid."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "fakes"
PATIENCE_S = 30.0
COMMAND = (sys.executable, "-m", "vigil")
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run with `&` would hand down that it is ignored


class Result(NamedTuple):
    """What a command left. `verdict` is the last JSON object on stdout, where there is one."""

    rc: int
    out: str
    err: str
    verdict: dict[str, Any]

    @property
    def word(self) -> str:
        return str(self.verdict.get("verdict"))


def until(look: Callable[[], Any], what: str = "it") -> Any:
    """Wait until a call returns something true, and return it."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        if found := look():
            return found
        threading.Event().wait(0.01)
    raise AssertionError(f"waited in vain for {what}")


class Vigil:
    """Runs `vigil` with a state folder that nobody else knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(self.state),
            "PYTHONPATH": str(ROOT / "packages" / "vigil" / "src"),
        }
        self.env.pop("COLUMNS", None)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.started: list[subprocess.Popen[str]] = []

    def __call__(self, *args: str, env: dict[str, str] | None = None) -> Result:
        """Run one command to its end."""
        done = subprocess.run(
            [*COMMAND, *args],
            env={**self.env, **(env or {})},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S * 2,
        )
        return result(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str) -> "Running":
        """Start one command, to be looked at while it runs."""
        return Running(self.begin(*COMMAND, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def begin(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Start any process, as somebody else would; it ends with the test."""
        process = subprocess.Popen(
            command,
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            **options,
        )
        self.started.append(process)
        return process

    def begin_logged(self, log: Path, *command: str) -> subprocess.Popen[str]:
        """Start a process as `nohup COMMAND >> log 2>&1 &` would."""
        with log.open("ab") as file:
            return self.begin(*command, stdout=file, stderr=file)

    def fake(self, *flags: str) -> list[str]:
        """Return the command line of a fake server on our port."""
        return [sys.executable, str(FAKES / "server.py"), "--port", str(self.port), "--served-model-name", "m", *flags]

    def up(self, *options: str, fake: tuple[str, ...] = ("--load", "0.2s", "--warmup", "0s")) -> Result:
        """`vigil up --json` of a fake server called s."""
        return self("up", "--json", "--name", "s", *options, "--", *self.fake(*fake))

    def files(self) -> list[Path]:
        """Return every file under the state folder."""
        return [path for path in self.state.rglob("*") if path.is_file()]

    def processes(self) -> list[int]:
        """Return the pids of all that carries our state folder in its environment."""
        wanted = f"XDG_STATE_HOME={self.state}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.started:
                process.poll()
        for process in self.started:
            process.wait(PATIENCE_S)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


class Running:
    """A command that runs; what it says is kept."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid
        self._said: dict[str, list[str]] = {"out": [], "err": []}
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", process.stdout), ("err", process.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str, stream: Any) -> None:
        with contextlib.suppress(ValueError):
            for line in stream:
                self._said[name].append(line)

    @property
    def out(self) -> str:
        return "".join(list(self._said["out"]))

    @property
    def err(self) -> str:
        return "".join(list(self._said["err"]))

    def until_err(self, text: str) -> None:
        """Wait until stderr holds a text."""
        self._until("err", text)

    def until_out(self, text: str) -> None:
        """Wait until stdout holds a text."""
        self._until("out", text)

    def _until(self, name: str, text: str) -> None:
        def look() -> bool:
            over = self.process.poll() is not None and not any(reader.is_alive() for reader in self._readers)
            said = text in "".join(list(self._said[name]))
            assert said or not over, f"ended without {text!r} on std{name}: {self.out}{self.err}"
            return said

        until(look, f"{text!r} on std{name}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Result:
        """Wait for its end."""
        self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return result(self.process.returncode, self.out.encode(), self.err.encode())


def result(rc: int, out: bytes, err: bytes) -> Result:
    lines = out.decode().strip().splitlines()
    verdict: Any = None
    if lines and lines[-1].startswith("{"):
        verdict = json.loads(lines[-1])
    return Result(rc, out.decode(), err.decode(), verdict if isinstance(verdict, dict) else {})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
