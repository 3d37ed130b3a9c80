"""A port of another host, brought here through the user's own ssh, for a client that measures what listens there on loopback."""

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc

from vigil.errors import UnreachableError
from vigil.hosts.reach import SSH
from vigil.screen import plain

OPENS_WITHIN_S = 20.0
LOOK_S = 0.05
KEPT_BYTES = 4096

# Of its own: through a master of the user's the tokens would share a connection with whatever else goes there, and the forwarding
# would outlive us.
_ALONE = ("-o", "ExitOnForwardFailure=yes", "-o", "ControlMaster=no", "-o", "ControlPath=none")

# A command instead of -N: sshd sends small packets at once (TCP_NODELAY) only where a command runs. With -N each answer's first
# token came 24 ms late on loopback (OpenSSH 9.2), and the next ones in a heap. It ends with its input, so with us.
_HELD = "cat"


@asynccontextmanager
async def tunnel(on: str, host: str, port: int) -> AsyncIterator[int]:
    """Give the port of this machine that leads to `host`:`port` as `on` sees it; raise `UnreachableError` where there is none."""
    local = free_port()
    there = f"[{host}]" if ":" in host else host
    command = [*SSH, *_ALONE, "-L", f"127.0.0.1:{local}:{there}:{port}", on, _HELD]
    process = await anyio.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        await _open(process, on, local)
        yield local
    finally:
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
            await process.aclose()


async def _open(process: anyio.abc.Process, on: str, local: int) -> None:
    """Return when the port takes connections; raise with ssh's own last words where it ended, or took too long."""
    with anyio.move_on_after(OPENS_WITHIN_S):
        while process.returncode is None:
            if await _listens(local):
                return
            await anyio.sleep(LOOK_S)
    words = b""
    if process.returncode is not None and process.stderr is not None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            words = await process.stderr.receive(KEPT_BYTES)
    last = (
        plain(words.decode("utf-8", "replace").strip().rpartition("\n")[2], 300)
        or f"no port within {OPENS_WITHIN_S:.0f} s"
    )
    raise UnreachableError(f"{on}: its port could not be brought here by ssh: {last}")


async def _listens(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
