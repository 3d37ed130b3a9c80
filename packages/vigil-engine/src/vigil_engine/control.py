"""A socket of the user's own in the deciding process: `status`, `on`, `off`, `auto`. There is no way in from the network.

One line of JSON in (`{"do": "off"}`), one out. Whoever may ask is decided by the kernel's word on who connects: the same user,
or root. The thread only notes what is asked; the next step of the engine does it.
"""

import contextlib
import json
import os
import socket
import struct
import threading
from typing import Any, Dict

from .decider import Decider
from .policy import MODES

STATUS = "status"
MOST_BYTES = 4096
PATIENCE_S = 2.0
_CRED = struct.Struct("3i")


def listen(folder: str, decider: Decider) -> threading.Thread:
    """Open the socket `engine-PID.sock` in the folder, and answer at it for the life of the process.

    Raises:
        OSError: It cannot be opened there.

    """
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    name = f"engine-{os.getpid()}.sock"
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # a state folder may lie deeper than the 108 bytes of an address
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=at)
        before = os.umask(0o177)
        try:
            server.bind(f"/proc/self/fd/{at}/{name}")
        finally:
            os.umask(before)
        server.listen(4)
    except OSError:
        server.close()
        raise
    finally:
        os.close(at)
    thread = threading.Thread(target=_serve, args=(server, decider), name="vigil-engine", daemon=True)
    thread.start()
    return thread


def _serve(server: socket.socket, decider: Decider) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client, contextlib.suppress(OSError, ValueError, RecursionError):
            client.settimeout(PATIENCE_S)
            client.sendall(json.dumps(_answer(client, decider)).encode() + b"\n")


def _answer(client: socket.socket, decider: Decider) -> Dict[str, Any]:
    _, uid, _ = _CRED.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CRED.size))
    if uid not in (0, os.geteuid()):
        return {"error": f"user {uid} may not ask: the server runs as user {os.geteuid()}"}
    asked = json.loads(_line(client))
    word = asked.get("do") if isinstance(asked, dict) else None
    if word in MODES:
        decider.ask(word)
    elif word != STATUS:
        return {"error": f"{STATUS}, {', '.join(MODES)} can be asked; not {str(word)[:40]!r}"}
    return decider.status()


def _line(client: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < MOST_BYTES:
        more = client.recv(MOST_BYTES)
        if not more:
            break
        data += more
    return data
