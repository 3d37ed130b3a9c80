"""Who listens on a port: the kernel's list of sockets, and /proc/PID/fd for their owners."""

import ipaddress
import os
import sys
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple, Union

from .sockdiag import list_listeners

LISTEN = b"0A"
HALF_OPEN = b"03"
LOOPBACKS = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class Listener(NamedTuple):
    """One listening socket."""

    address: Address
    inode: int


class Holders(NamedTuple):
    """The processes that hold sockets, by inode. `complete`: every process's descriptors could be read."""

    by_inode: Dict[int, List[int]]
    complete: bool


def read_listeners(port: int, folder: Optional[str] = None) -> Optional[List[Listener]]:
    """Return the sockets that listen on `port`, or None where the kernel does not show them.

    `folder`: read the files tcp and tcp6 there, which is also what is done where the kernel does not answer.
    """
    asked = list_listeners(port) if folder is None else None
    if asked is not None:
        return [Listener(_plain(address), inode) for address, inode in asked]
    found: List[Listener] = []
    readable = False
    for name in ("tcp", "tcp6"):
        lines = _listening_lines(f"{folder or '/proc/net'}/{name}")
        if lines is None:
            continue
        readable = True
        found += [listener for listener in (_parse(line, port) for line in lines) if listener]
    return found if readable else None


def read_listener_uids(port: int, folder: str = "/proc/net") -> List[int]:
    """Return the users whose sockets listen on `port`: the kernel shows them also where it does not show the process."""
    lines = [line for name in ("tcp", "tcp6") for line in _listening_lines(f"{folder}/{name}") or ()]
    fields = (line.split() for line in lines if _parse(line, port) is not None)
    return sorted({int(one[7]) for one in fields if one[7].isdigit()})


def _plain(address: Address) -> Address:
    return getattr(address, "ipv4_mapped", None) or address


def _listening_lines(path: str) -> Optional[List[bytes]]:
    """Return the lines of listening sockets. The kernel writes them first: the connections after them are not read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    lines: List[bytes] = []
    rest = b""
    try:
        while True:
            part = os.read(fd, 65536)
            *complete, rest = (rest + part).split(b"\n")
            for line in complete:
                fields = line.split(None, 4)
                if len(fields) < 5 or fields[0] == b"sl":  # noqa: PLR2004 - the heading
                    continue
                if fields[3] == LISTEN:
                    lines.append(line)
                elif fields[3] != HALF_OPEN:
                    return lines
            if not part:
                return lines
    except OSError:
        return lines
    finally:
        os.close(fd)


def _parse(line: bytes, port: int) -> Optional[Listener]:
    fields = line.split()
    host, _, number = fields[1].partition(b":")
    try:
        if int(number, 16) != port:
            return None
        return Listener(_parse_address(host), int(fields[9]))
    except (ValueError, IndexError):
        return None


def _parse_address(text: bytes) -> Address:
    """Read the kernel's form: 32-bit words in the machine's own byte order."""
    raw = bytes.fromhex(text.decode("ascii"))
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return _plain(ipaddress.ip_address(raw))


def reachable(listeners: Iterable[Listener], host: str) -> List[Listener]:
    """Return the listeners that would answer a connection to `host`; one bound to that address hides the wide ones."""
    listeners = list(listeners)
    if host == "localhost" or host.endswith(".localhost"):  # either may answer
        both = [found for loopback in LOOPBACKS for found in _answering(listeners, loopback)]
        return list(dict.fromkeys(both))
    try:
        target = ipaddress.ip_address(host)
    except ValueError:
        return listeners  # a name: which address it means is not ours to resolve here
    return _answering(listeners, target)


def _answering(listeners: List[Listener], target: Address) -> List[Listener]:
    exact = [listener for listener in listeners if listener.address == target]
    families = {target.version, 6}  # a socket for all IPv6 addresses takes IPv4 as well
    wide = [found for found in listeners if found.address.is_unspecified and found.address.version in families]
    return exact or wide


def find_holders(inodes: FrozenSet[int], pids: Iterable[int]) -> Holders:
    """Return which of `pids` hold the sockets."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: Dict[int, List[int]] = {}
    complete = True
    for pid in pids:
        links = read_links(pid)
        if links is None:
            complete = False
            continue
        for inode in {wanted[link] for _, link in links if link in wanted}:
            found.setdefault(inode, []).append(pid)
    return Holders(found, complete)


def read_links(pid: int) -> Optional[Set[Tuple[str, str]]]:
    """Return the open descriptors of a process with what they point to; None where they may not be read."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return set()
    except OSError:
        return None
    links = set()
    for name in names:
        try:
            links.add((name, os.readlink(f"{folder}/{name}")))
        except OSError:
            continue
    return links
