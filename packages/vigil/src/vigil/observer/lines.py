"""Cut a stream of log bytes into numbered lines, whatever the chunks, in bounded memory."""

import re
from typing import List, NamedTuple, Optional

LINE_BYTES = 8192

_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    rb"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    rb"|[ -/]+[0-~]|[0-Z\\-~])"
)
# Control characters, and those that turn a terminal's text around or break its lines.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class RawLine(NamedTuple):
    r"""One line as it stands in the file. `number` counts newlines from 1; updates by `\r` share it."""

    number: int
    raw: bytes


def escape(text: str) -> str:
    r"""Return `text` with what is not safe to print made visible: `\x00`, `\u202e`."""
    return _UNSAFE.sub(_show, text)


def _show(match: "re.Match[str]") -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004


def strip_escapes(raw: bytes) -> bytes:
    """Return the bytes without terminal escape sequences."""
    return _ESCAPES.sub(b"", raw) if b"\x1b" in raw else raw


def show(raw: bytes) -> str:
    """Return a line as text for people: no escape sequences, no invalid UTF-8, no control characters."""
    return escape(strip_escapes(raw).decode("utf-8", "replace"))


class LineSplitter:
    r"""Lines from bytes, at `\n`, `\r\n` and `\r`.

    Of several `\r` updates in one chunk only the last is given. A line longer than `LINE_BYTES` is cut, with its length
    as a mark; a run of NULs at its start (the hole that a truncated file leaves) becomes one.
    """

    def __init__(self, lines_before: int = 0) -> None:
        self.number = lines_before + 1
        self._kept = bytearray()
        self._length = 0
        self._nul = False
        self._update: Optional[bytes] = None  # the last segment of this line that a \r ended, not given yet
        self._given: Optional[bytes] = None  # what was given last for this line

    def feed(self, data: bytes) -> List[RawLine]:
        """Take a chunk and return the lines that it completed."""
        lines: List[RawLine] = []
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._take(piece)
            self._end_line(lines)
        self._take(rest)
        if self._update is not None:
            self._give(self._update, lines)
        return lines

    def flush(self) -> List[RawLine]:
        """Return the line that is not complete yet, where there is news of it. It stays open: more of it may come."""
        lines: List[RawLine] = []
        if self._started:
            self._give(self._segment(), lines)
        return lines

    @property
    def _started(self) -> bool:
        return self._length > 0 or self._nul

    def _take(self, piece: bytes) -> None:
        if b"\r" not in piece:
            self._extend(piece)
            return
        first, *others = piece.split(b"\r")
        self._extend(first)
        for segment in others:
            if self._started:
                self._update = self._segment()
                self._clear_segment()
            self._extend(segment)

    def _extend(self, piece: bytes) -> None:
        if not self._length and piece.startswith(b"\0"):
            piece = (
                b"" if piece == bytes(len(piece)) else piece.lstrip(b"\0")
            )  # a hole may be gigabytes: compare it at once
            self._nul = True
        self._length += len(piece)
        room = LINE_BYTES - len(self._kept)
        if room > 0:
            self._kept += piece[:room]

    def _segment(self) -> bytes:
        raw = bytes(self._kept)
        if self._length > len(raw):
            raw = _whole_characters(raw) + f" …[{self._length} bytes]".encode()
        return b"\0" + raw if self._nul else raw

    def _clear_segment(self) -> None:
        self._kept.clear()
        self._length = 0
        self._nul = False

    def _end_line(self, lines: List[RawLine]) -> None:
        if self._started:
            self._give(self._segment(), lines)
        elif self._update is not None:
            self._give(self._update, lines)
        elif self._given is None:
            self._give(b"", lines)
        self._clear_segment()
        self._update = None
        self._given = None
        self.number += 1

    def _give(self, raw: bytes, lines: List[RawLine]) -> None:
        self._update = None
        if raw != self._given:
            self._given = raw
            lines.append(RawLine(self.number, raw))


def _whole_characters(raw: bytes) -> bytes:
    """Drop the last character of `raw` where it is not plain ASCII: the cut may have gone through it."""
    end = len(raw)
    while end and len(raw) - end < 4 and raw[end - 1] & 0xC0 == 0x80:  # noqa: PLR2004 - a character has four bytes at most
        end -= 1
    return raw[: end - 1] if end and raw[end - 1] >= 0xC0 else raw[:end]  # noqa: PLR2004
