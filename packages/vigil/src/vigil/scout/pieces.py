"""Read pieces of files of others: regular ones only, never more than was asked for; and JSON of others, however nasty it is."""

import json
import os
import stat
from typing import Any, NamedTuple, Optional

TEXT_CHARS = 1000
MOST_ITEMS = 4096
DEEPEST = 24
LONGEST_NUMBER = 18


class Shape(NamedTuple):
    """What a file is from outside: `regular` False for folders, pipes and devices."""

    size: int
    mtime_ns: int
    regular: bool


def shape_of(path: str) -> Optional[Shape]:
    """Return size and time of what a path leads to, or None where nothing is there."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return Shape(status.st_size, status.st_mtime_ns, stat.S_ISREG(status.st_mode))


def piece(path: str, offset: int, size: int) -> Optional[bytes]:
    """Return up to `size` bytes from `offset` on of a regular file, or None where it is none or cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        parts = []
        while size > 0:
            part = os.pread(handle, min(size, 1 << 24), offset)
            if not part:
                break
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)
    except (OSError, OverflowError):
        return None
    finally:
        os.close(handle)


def is_pointer(head: bytes) -> bool:
    """Tell whether a file begins as a pointer of Git LFS: the file itself was never fetched."""
    return head.startswith(b"version https://git-lfs.github.com/spec/")


def is_page(head: bytes) -> bool:
    """Tell whether a file is a web page: what a failed download leaves."""
    return head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml"))


def no_weights(head: bytes, size: int) -> Optional[str]:
    """Return in words why a file that should hold weights holds something else; None where that does not show."""
    if size == 0:
        return "it is empty"
    if is_pointer(head):
        return "it is a pointer of Git LFS (%d bytes): the file itself was never fetched" % size
    if is_page(head):
        return "it is a web page (%d bytes): a download that failed" % size
    return None


def parsed(data: bytes) -> Any:
    """Return JSON of others; raises ValueError in words where it is none, nested too deeply, or holds numbers without end."""
    try:
        return json.loads(data.decode("utf-8"), parse_int=integer_of, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested more deeply than a JSON parser goes") from None
    except UnicodeDecodeError:
        raise ValueError("it is no JSON: it is no text") from None
    except json.JSONDecodeError as error:
        raise ValueError("it is no JSON: line %d, column %d: %s" % (error.lineno, error.colno, error.msg)) from None


def integer_of(digits: str) -> int:
    """Return a number of JSON; raises ValueError where it has more digits than any that is meant."""
    if len(digits) > LONGEST_NUMBER + 1:
        raise ValueError("a number in it has %d digits" % len(digits))
    return int(digits)


def trimmed(value: Any, deep: int = DEEPEST) -> Any:
    """Return JSON cut down to what is passed on: long texts and lists are cut; raises ValueError where it is too deep."""
    if isinstance(value, (dict, list)) and deep <= 0:
        raise ValueError("it is nested more than %d deep" % DEEPEST)
    if isinstance(value, dict):
        return {plain(name): trimmed(value[name], deep - 1) for name in list(value)[:MOST_ITEMS]}
    if isinstance(value, list):
        return [trimmed(one, deep - 1) for one in value[:MOST_ITEMS]]
    return plain(value) if isinstance(value, str) else value


def plain(text: str) -> str:
    """Return a text that any JSON reader takes: bounded, and without halves of characters."""
    return text[:TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
