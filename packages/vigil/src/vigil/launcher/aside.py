"""Do a piece of work beside a request: in a process of its own, of the lowest priority, that nobody waits for."""

import os
import signal
import sys
from typing import Callable

LAST_S = 60  # however the work hangs, the kernel ends it then
STANDARD = (0, 1, 2)


def aside(work: Callable[[], None]) -> None:
    """Fork, and do `work` in the child. We go on at once; where no child can be had, the work is not done."""
    try:
        sys.stdout.flush()
        pid = os.fork()
    except OSError:
        return
    if pid == 0:
        try:
            _let_go()
            work()
        finally:
            os._exit(0)


def _let_go() -> None:
    """Leave the session and all files of whoever asked: a connection stays open for as long as somebody holds it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in STANDARD:
        os.dup2(nowhere, number)
    os.setsid()
    os.closerange(3, 1024)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LAST_S)
    os.nice(19)
    os.chdir("/")
