"""Have the scout look at this machine in a fork of this interpreter: none is started anew, and what is loaded is there.

It is a process of its own all the same: what it meets on the disks cannot end us, and a deadline can end it. For a caller
that has no other threads yet; one that has (an event loop) asks through `look_ahead`.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from vigil.errors import UnreachableError
from vigil.hosts.reach import Reach
from vigil.hosts.reply import LONGEST_REPLY_BYTES, answer_in, flooded, late

PART_BYTES = 1 << 16


@contextmanager
def look_here(question: dict[str, Any], *, timeout_s: float = 60.0) -> Iterator[Callable[[], dict[str, Any]]]:
    """Begin a look (see `vigil.scout.desk.Question`) and give what waits for its answer; the look ends with the block.

    The answer raises as `hosts.call` does.
    """
    until_s = time.monotonic() + timeout_s
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _look(question, writing)
    os.close(writing)
    with suppress(OSError):  # it has done so itself, or has ended
        os.setpgid(pid, pid)
    try:
        yield lambda: _answer(reading, until_s, timeout_s)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _look(question: dict[str, Any], writing: int) -> NoReturn:
    """Look, in the child: in a group of its own, so that a Ctrl-C is ours, with nothing of our streams but the pipe."""
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.stdout = os.fdopen(writing, "w", encoding="ascii")
        from vigil.scout import desk  # noqa: PLC0415 - the parent has no use for it

        desk.main(question)
    except BaseException as error:  # noqa: BLE001 - nothing of a child may go on as if it were us
        with suppress(OSError):
            print(json.dumps({"refused": "scout", "text": f"{type(error).__name__}: {error}"}), flush=True)
    os._exit(0)


def _answer(reading: int, until_s: float, timeout_s: float) -> dict[str, Any]:
    here, data = Reach(), bytearray()
    while True:
        left_s = until_s - time.monotonic()
        if left_s <= 0 or not select.select([reading], [], [], left_s)[0]:
            raise late(here, timeout_s)
        part = os.read(reading, PART_BYTES)
        if not part:
            break
        data += part
        if len(data) > LONGEST_REPLY_BYTES:
            raise flooded(here)
    answer = answer_in(here, bytes(data))
    if answer is None:
        raise UnreachableError("the scout ended without an answer")
    return answer
