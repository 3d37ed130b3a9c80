"""A real OpenSSH server on loopback for tests, and a way to cut the connection to it.

    with Sshd() as sshd:
        subprocess.run([*sshd.ssh, "hostname"])

The server listens on a free port with fresh keys, lets in only the user who runs the tests, and takes its host's place under the
name `vigil-test`. `sshd.path` holds a folder whose `ssh` reads this server's configuration: put it first on PATH, and a tool that
calls plain `ssh vigil-test` gets here. Connections go through a `CuttableProxy`.
"""

import contextlib
import os
import pathlib
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest

HOST = "vigil-test"
START_DEADLINE_S = 10.0
CLIENT = """Host {host}
    HostName 127.0.0.1
    Port {port}
    User {user}
    IdentityFile {folder}/client_key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    StrictHostKeyChecking yes
    HostKeyAlias {host}
    BatchMode yes
"""
SERVER = """ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
PermitUserEnvironment no
AcceptEnv *
MaxStartups 100
LogLevel ERROR
{extra}
"""


def find_sshd() -> str | None:
    """Return the path of sshd, or None where it is not installed (`tests/install-system.sh` installs it)."""
    return shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")


_given: set[int] = set()


def free_port() -> int:
    """Return a TCP port of loopback that nothing listened on a moment ago, and that this process was not given before.

    It lies below the range from which the kernel takes ports for connections: one of those could come in between.
    """
    while True:
        port = random.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _given:
                _given.add(port)
                return port


class CuttableProxy:
    """A TCP relay between a client and `target`, whose links can be cut or frozen as a network does.

    `cut`: links die with a reset and new ones are refused. `freeze`: nothing arrives any more, and nobody is told.
    `mend`: both end; frozen links go on where they stopped.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._flows = threading.Event()
        self._flows.set()
        self._refusing = False
        self._closed = False
        self._lock = threading.Lock()
        self._links: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Reset all links and refuse new ones."""
        self._refusing = True
        with self._lock:
            links, self._links = self._links, []
        for pair in links:
            for end in pair:
                _reset(end)

    def freeze(self) -> None:
        """Let nothing through, in silence."""
        self._flows.clear()

    def mend(self) -> None:
        """Let everything through again."""
        self._refusing = False
        self._flows.set()

    def close(self) -> None:
        """End all, for good."""
        self._closed = True
        self.mend()
        self.cut()
        # shutdown wakes the accepting thread; close alone would leave it waiting on a number that may be reused
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                _reset(client)
                continue
            threading.Thread(target=self._join, args=[client], daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        """Connect one client to the target; a frozen network answers no greeting either."""
        self._flows.wait()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        with self._lock:
            self._links.append((client, server))
        for source, sink in ((client, server), (server, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pump, args=[source, sink], daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def _reset(end: socket.socket) -> None:
    """Close a socket so that its peer sees a reset at once, and wake whoever reads from it."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        end.shutdown(socket.SHUT_RD)
    end.close()


class Sshd:
    """A running sshd and the way to it. `env`: variables that every login gets, beside those of the client's SetEnv."""

    def __init__(self, env: dict[str, str] | None = None) -> None:
        found = find_sshd()
        if found is None:
            raise RuntimeError("no sshd here: run tests/install-system.sh")
        self._sshd = found
        self._env = env or {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-sshd-")))
            self.port = free_port()
            self._write_keys()
            self._write_configuration()
            stack.callback(self._stop)
            self._start()
            self.proxy = CuttableProxy(("127.0.0.1", self.port))
            stack.callback(self.proxy.close)
            self._write_client()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def ssh(self) -> list[str]:
        """The command that reaches this server, ending with its host name."""
        return ["ssh", "-F", str(self.config), HOST]

    @property
    def config(self) -> pathlib.Path:
        """The client's configuration, for `ssh -F`."""
        return self.folder / "ssh_config"

    @property
    def path(self) -> pathlib.Path:
        """A folder with an `ssh` that knows this server, to put first on PATH."""
        return self.folder / "bin"

    def _write_keys(self) -> None:
        for name in ("host_key", "client_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.folder / name], check=True
            )
        shutil.copy(self.folder / "client_key.pub", self.folder / "authorized_keys")
        (self.folder / "known_hosts").write_text(f"{HOST} {(self.folder / 'host_key.pub').read_text()}")

    def _write_configuration(self) -> None:
        home = (
            self.folder / "home"
        )  # what the user's own shell does at a login is none of a test's business, and may be slow
        home.mkdir()
        pairs = " ".join(f'"{name}={value}"' for name, value in {"HOME": str(home), **self._env}.items())
        text = SERVER.format(port=self.port, folder=self.folder, extra=f"SetEnv {pairs}")
        (self.folder / "sshd_config").write_text(text)

    def _write_client(self) -> None:
        user = pwd.getpwuid(os.getuid()).pw_name
        self.config.write_text(CLIENT.format(host=HOST, port=self.proxy.port, user=user, folder=self.folder))
        real = shutil.which("ssh")
        self.path.mkdir()
        wrapper = self.path / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {real} -F "{self.config}" "$@"\n')
        wrapper.chmod(0o755)

    def _start(self) -> None:
        """Start the daemon and wait until it greets."""
        if os.getuid() == 0:
            pathlib.Path("/run/sshd").mkdir(
                exist_ok=True
            )  # its chroot for strangers; sshd wants it even where it is not used
        log = self.folder / "sshd.log"
        command = [self._sshd, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(log)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        deadline_s = time.monotonic() + START_DEADLINE_S
        while time.monotonic() < deadline_s and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                if link.recv(4) == b"SSH-":
                    return
            time.sleep(0.02)
        raise RuntimeError(f"sshd did not start: {log.read_text() if log.exists() else ''}")

    def _stop(self) -> None:
        process = getattr(self, "_process", None)
        if process is not None:
            process.terminate()
            process.wait(timeout=10)


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    if find_sshd() is None:
        pytest.skip("no sshd here: tests/install-system.sh installs it")
    with Sshd() as running:
        yield running
