"""One HTTP exchange with one deadline for all of it, however the other side trickles.

`http.client` has a time-out for each read only and costs several times as much; this runs twenty times a second
beside a server that loads.
"""

import ipaddress
import os
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

HEAD_BYTES = 64 * 1024
BODY_BYTES = 256 * 1024
_ANY_HOST = {"": "127.0.0.1", "*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server that listens on all answers


class Target(NamedTuple):
    """Where a server answers."""

    scheme: str
    host: str
    port: int


class Reply(NamedTuple):
    """What came back: a status, or the name of an error. `latency_s` is the whole exchange."""

    status: Optional[int] = None
    error: Optional[str] = None
    latency_s: float = 0.0
    headers: Dict[str, str] = {}  # noqa: RUF012 - never changed
    body: bytes = b""


class BadReplyError(Exception):
    """What came back is not HTTP."""


class ClosedError(Exception):
    """The other side closed before the reply was complete."""


def make_target(scheme: str, host: str, port: int) -> Target:
    """Return the place to ask for a server that was told to listen on `host`."""
    bare = host.strip().strip("[]")
    return Target(scheme or "http", _ANY_HOST.get(bare, bare), port)


def is_loopback(host: str) -> bool:
    """Tell whether a host name means this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_here(host: str) -> bool:
    """Tell whether a host is this machine: a loopback, its own name or one of its addresses. Names are not resolved."""
    node = os.uname().nodename
    if is_loopback(host) or host in (node, node.partition(".")[0]):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))  # the kernel lets us bind our own addresses only
        except OSError:
            return False
    return True


def exchange(  # noqa: PLR0913
    target: Target,
    method: str,
    path: str,
    timeout_s: float,
    *,
    body: Optional[bytes] = None,
    key: Optional[str] = None,
    limit: int = BODY_BYTES,
) -> Reply:
    """Ask once, on a connection of its own. Never raises for what the network or the other side does."""
    begun = time.monotonic()
    wire = _Wire(begun + timeout_s)
    try:
        wire.connect(target)
        wire.send(_request(target, method, path, body, key))
        reply = _read_reply(wire, limit)
        return reply._replace(latency_s=time.monotonic() - begun)
    except Exception as error:
        return Reply(error=_name_error(error), latency_s=time.monotonic() - begun)
    finally:
        wire.close()


def _name_error(error: Exception) -> str:
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)):
        return "reset"
    if isinstance(error, ClosedError):
        return "closed"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "unresolved"
    if type(error).__module__ == "ssl":
        return "closed" if type(error).__name__ in ("SSLEOFError", "SSLZeroReturnError") else "tls"
    return "other"


def _request(target: Target, method: str, path: str, body: Optional[bytes], key: Optional[str]) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    if target.port != (443 if target.scheme == "https" else 80):
        host = f"{host}:{target.port}"
    lines = [
        f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1",
        f"Host: {host}",
        "Connection: close",
        "User-Agent: vigil",
        "Accept: */*",
        "Accept-Encoding: identity",
    ]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    clean = [
        line.replace("\r", "").replace("\n", "") for line in lines
    ]  # a key or path with a newline must not add a header
    return ("\r\n".join(clean) + "\r\n\r\n").encode("utf-8") + (body or b"")


class _Wire:
    """A socket whose every call is bounded by what is left until the deadline."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._socket: Any = None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _arm(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def connect(self, target: Target) -> None:
        failure: Optional[OSError] = None
        for family, address in _resolve(target):
            self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                self._arm()
                self._socket.connect(address)
                break
            except OSError as error:
                self._socket.close()
                failure = failure or error
        else:
            raise failure or OSError("no address")
        if target.scheme == "https":
            self._secure(target.host)

    def _secure(self, host: str) -> None:
        import ssl  # noqa: PLC0415 - dear to load, and seldom wanted

        context = ssl.create_default_context()
        if is_loopback(host):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._socket = context.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
        self._arm()
        self._socket.do_handshake()

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._arm()
            view = view[self._socket.send(view) :]

    def receive(self) -> bytes:
        self._arm()
        part: bytes = self._socket.recv(65536)
        return part


def _resolve(target: Target) -> List[Tuple[int, Any]]:
    try:
        address = ipaddress.ip_address(target.host)
    except ValueError:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        return [(int(family), address) for family, _, _, _, address in found]
    return [(socket.AF_INET if address.version == 4 else socket.AF_INET6, (target.host, target.port))]  # noqa: PLR2004


class _Reader:
    """Buffered reading from a wire, each piece with a limit."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire
        self._buffer = bytearray()
        self._over = False

    def until(self, end: bytes, limit: int) -> bytes:
        """Return the bytes before `end`, which is consumed."""
        searched = 0
        while True:
            at = self._buffer.find(end, max(0, searched - len(end)))
            if at >= 0:
                found = bytes(self._buffer[:at])
                del self._buffer[: at + len(end)]
                return found
            searched = len(self._buffer)
            if searched > limit:
                raise BadReplyError
            if not self._fill():
                if self._buffer and not b"HTTP/".startswith(bytes(self._buffer[:5])):
                    raise BadReplyError
                raise ClosedError

    def take(self, count: int) -> bytes:
        """Return exactly `count` bytes."""
        while len(self._buffer) < count:
            if not self._fill():
                raise ClosedError
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def rest(self, limit: int) -> bytes:
        """Return all until the other side closes, at most `limit` bytes."""
        while len(self._buffer) < limit and self._fill():
            pass
        return bytes(self._buffer[:limit])

    def _fill(self) -> bool:
        if self._over:
            return False
        part = self._wire.receive()
        self._over = not part
        self._buffer += part
        return not self._over


def _read_reply(wire: _Wire, limit: int) -> Reply:
    reader = _Reader(wire)
    while True:
        status, headers = _parse_head(reader.until(b"\r\n\r\n", HEAD_BYTES))
        if status >= 200:  # noqa: PLR2004 - 100 and 103 announce the real one
            break
    return Reply(status=status, headers=headers, body=_read_body(reader, status, headers, limit))


def _parse_head(head: bytes) -> Tuple[int, Dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if not version.startswith("HTTP/1") or not (code.isascii() and code.isdigit() and len(code) == 3):  # noqa: PLR2004
        raise BadReplyError
    headers: Dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return int(code), headers


def _read_body(reader: _Reader, status: int, headers: Dict[str, str], limit: int) -> bytes:
    if status in (204, 304):
        return b""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _read_chunks(reader, limit)
    length = headers.get("content-length", "")
    if not length:
        return reader.rest(limit)
    if not (length.isascii() and length.isdigit() and len(length) < 20):  # noqa: PLR2004
        raise BadReplyError
    return reader.take(min(int(length), limit))


def _read_chunks(reader: _Reader, limit: int) -> bytes:
    body = bytearray()
    while len(body) < limit:
        size_text = reader.until(b"\r\n", 1024).partition(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            raise BadReplyError from None
        if size < 0:
            raise BadReplyError
        if size == 0:
            break
        wanted = min(size, limit - len(body))
        body += reader.take(wanted)
        if wanted < size:
            break
        reader.take(2)
    return bytes(body)
