"""Give this process another title, in `comm` and on its command line, as setproctitle does. Linux, standard library only."""

import ctypes

PR_SET_NAME = 15
ARG_START, ARG_END = 47, 48  # fields 48 and 49 of /proc/self/stat (proc(5)), counted from 0


def set_title(title: str) -> None:
    """Overwrite the memory of the arguments with `title` (cut where it is longer)."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode()[:15])
    with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123 - plain open keeps the start fast
        head, _, tail = stat.read().rpartition(b")")
    fields = [head, b")", *tail.split()]
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    room = end - start
    ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)
