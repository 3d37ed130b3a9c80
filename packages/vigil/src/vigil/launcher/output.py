"""Open the file that a server writes its log to: a regular file that can be followed, never something that blocks."""

import errno
import os
import stat
from contextlib import ExitStack

from .state import Refused, discard


def open_log(log: str, undo: ExitStack) -> int:
    """Return a handle that appends; refuse what cannot be written or followed. A file made here goes when the start fails."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    name = os.fsencode(log)
    try:
        try:
            handle = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600)
            undo.callback(discard, log)
        except FileExistsError:
            handle = os.open(name, flags | os.O_CREAT, 0o600)
    except OSError as error:
        # A pipe without a reader
        why = "it is no regular file" if error.errno == errno.ENXIO else error.strerror
        raise Refused("usage", "cannot write the log %s: %s; nothing was started" % (log, why)) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Refused("usage", "cannot write the log %s: it is no regular file; nothing was started" % log)
    os.set_blocking(handle, True)
    return handle
