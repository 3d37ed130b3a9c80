"""Words to whoever reads them: a reader who has gone is no reason to stop watching, or to change what we found."""

import io
import os
import sys
from typing import TextIO


def say(text: str) -> bool:
    """Print data on stdout; return False where it could not be written, though somebody still wants it."""
    return _put(text, sys.stdout)


def mention(text: str) -> None:
    """Print everything else on stderr."""
    _put(f"vigil: {text}", sys.stderr)


def _put(text: str, stream: TextIO) -> bool:
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        _silence(stream)
    except OSError:  # a terminal that went away, a full disk
        _silence(stream)
        return False
    return True


def _silence(stream: TextIO) -> None:
    """Let the rest go nowhere, what is buffered included: the interpreter would complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_streams() -> None:
    """Give standard streams that were closed a place to go: Python would print what is meant for one on the other."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # in a terminal that knows ASCII only, spell the rest out
            stream.reconfigure(errors="backslashreplace")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is that of the stream
            setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8"))
