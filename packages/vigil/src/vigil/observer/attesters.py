"""Ask the attesters of a start, all at once and with one deadline: each is a socket in the start's folder.

What answers there is another program, and may be hostile: who listens is asked of the kernel, and what comes is taken apart with
care. One that does not answer holds its interpreter (a long call into C), or hangs.
"""

import json
import os
import select
import socket
import stat
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

MOST_NAMES = 20000
"""Names that are looked at: a forked process that ended leaves its own behind, and says nothing."""
MOST_TALKS = 512
REPLY_BYTES = 16 << 20
ANSWER_S = 3.0
CREDENTIALS_BYTES = 12


class Answer(NamedTuple):
    """What one process said; `error` in its place: "silent", "gone", "foreign", "broken", or "many" where there are too many."""

    pid: int
    told: Dict[str, Any]
    error: str = ""


class _Talk:
    """One exchange that goes on: what is still to be sent, and what has come."""

    def __init__(self, line: socket.socket, pid: int, request: bytes) -> None:
        self.line = line
        self.pid = pid
        self.left = memoryview(request)
        self.data = bytearray()

    def go_on(self) -> Optional[Answer]:
        """Send or receive what can be now; return the answer once it is there, or will not come."""
        try:
            if self.left:
                self.left = self.left[self.line.send(self.left) :]
                return None
            part = self.line.recv(1 << 20)
        except BlockingIOError:
            return None
        except OSError:
            return Answer(self.pid, {}, "gone")
        self.data += part
        if part and len(self.data) <= REPLY_BYTES and not part.endswith(b"\n"):
            return None
        return _read(self.pid, bytes(self.data))


def ask(folder: str, request: Dict[str, Any], patience_s: float = ANSWER_S) -> List[Answer]:
    """Ask every attester whose socket lies in `folder`; return what each said within `patience_s`, by pid."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    line = json.dumps(request).encode("ascii") + b"\n"
    talks: List[_Talk] = []
    answers: List[Answer] = []
    try:
        owner = os.fstat(handle).st_uid
        for name in _names(handle):
            if len(talks) >= MOST_TALKS:
                answers += _unasked(name)
                continue
            talk, answer = _connect("/proc/self/fd/%d/%s" % (handle, name), (owner, os.geteuid()), line)
            if answer is not None:
                answers.append(answer)
            elif talk is not None:
                talks.append(talk)
    finally:
        os.close(handle)
    answers += _hear(talks, time.monotonic() + patience_s)
    return sorted(answers, key=lambda one: one.pid)


def _unasked(name: str) -> List[Answer]:
    """Return that one process is not asked, where it lives."""
    pid = name.partition(".")[0]
    alive = pid.isascii() and pid.isdigit() and os.path.exists("/proc/" + pid)
    return [Answer(int(pid), {}, "many")] if alive else []


def _names(handle: int) -> List[str]:
    """Return the names of sockets, the ranks before what they forked later; a link could lead to anybody's."""
    found = [one for one in os.listdir(handle) if one.endswith(".sock")][:MOST_NAMES]
    return [one for one in sorted(found, key=lambda one: (len(one), one)) if _is_socket(handle, one)]


def _is_socket(handle: int, name: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _connect(path: str, owners: Tuple[int, ...], request: bytes) -> Tuple[Optional[_Talk], Optional[Answer]]:
    """Connect to one socket; of a process that is gone only its name is left, which says nothing."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    line.setblocking(False)  # noqa: FBT003 - it takes no keywords
    try:
        line.connect(path)
        told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS_BYTES)
    except BlockingIOError:  # its queue is full: nobody accepts
        line.close()
        name = os.path.basename(path).partition(".")[0]
        return None, Answer(int(name), {}, "silent") if name.isascii() and name.isdigit() else None
    except OSError:
        line.close()
        return None, None
    pid, uid = (int.from_bytes(told[at : at + 4], sys.byteorder) for at in (0, 4))
    if uid not in owners:
        line.close()
        return None, Answer(pid, {}, "foreign")
    talk = _Talk(line, pid, request)
    answer = talk.go_on()  # at once: among hundreds, a process would wait in vain for its request
    if answer is None:
        return talk, None
    line.close()  # it died between our connection and our first word
    return None, answer


def _hear(talks: List[_Talk], until_s: float) -> List[Answer]:
    answers = []
    poller = select.poll()
    open_talks = {talk.line.fileno(): talk for talk in talks}
    for number in open_talks:
        poller.register(number, select.POLLOUT)
    while open_talks and time.monotonic() < until_s:
        for number, _ in poller.poll(max(0.0, until_s - time.monotonic()) * 1000):
            talk = open_talks[number]
            answer = talk.go_on()
            if answer is not None:
                answers.append(answer)
                poller.unregister(number)
                open_talks.pop(number).line.close()
            elif not talk.left:
                poller.modify(number, select.POLLIN)
    for talk in open_talks.values():
        talk.line.close()
        answers.append(Answer(talk.pid, {}, "silent"))
    return answers


def _read(pid: int, data: bytes) -> Answer:
    if not data:
        return Answer(pid, {}, "gone")
    try:
        told = json.loads(data) if data.endswith(b"\n") and len(data) <= REPLY_BYTES else None
    except (ValueError, RecursionError):
        told = None
    return Answer(pid, told) if isinstance(told, dict) else Answer(pid, {}, "broken")
