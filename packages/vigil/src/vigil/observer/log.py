"""Follow the server's log by device, inode and offset, through rotation and truncation."""

import os
import stat
import time
from typing import Any, List, Optional, Sequence, Tuple

from .keep import pick
from .lines import LineSplitter, RawLine, show, strip_escapes
from .report import Reporter

CHUNK_BYTES = 256 * 1024
SMALLEST_CHUNK_BYTES = 16 * 1024
TURN_BYTES = 4 << 20
DRAIN_S = 5.0  # an end that was not drained by then was told without
TURN_S = 0.02  # an end of a process must not wait behind a flood of lines
COUNT_BYTES = 16 << 20
HISTORY_BYTES = 256 * 1024
FACT_LINES = 2000
HEAD_BYTES = 64
QUIET_S = 1.0


class LogTail:
    """One log file, named by its path. It is never held open for writing and never locked.

    `offset` None: what is there at the first look is history. `offset` with `inode`: resume there; a file that changed
    since is read from its start. The lines before `offset` are counted.
    """

    def __init__(self, path: str, report: Reporter, offset: Optional[int] = None, inode: Optional[int] = None) -> None:
        self.path = path
        self.keep: Optional[Sequence[bytes]] = None
        self._report = report
        self._resume = (offset, inode)
        self._first = True
        self._fd = -1
        self._file: Tuple[int, int] = (0, 0)
        self._head = b""
        self._position = 0
        self._count_from = 0
        self._counted = 0
        self._size = 0
        self._history_end = 0
        self._skip_partial = False
        self._splitter = LineSplitter()
        self._grew_s = 0.0
        self._looked_s = 0.0
        self._said_s = 0.0
        self._skipped = 0
        self._owed = False
        self._open_line = False
        self._unreadable: Optional[Tuple[str, bool]] = None
        self._chunk = SMALLEST_CHUNK_BYTES
        self._drain_to: Optional[Tuple[Tuple[int, int], int]] = None
        self._drain_s = 0.0

    def close(self) -> None:
        """Give the file back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def look(self, now: float) -> bool:
        """Read what is new, for `TURN_S` and at most `TURN_BYTES`. Return True where more is waiting."""
        self._looked_s = now
        if self._fd < 0 and not self._open():
            return False
        if self._count_from < self._position and self._counted < 0:
            return self._count()
        size = self._check_truncated()
        if self._read(now, min(size, self._position + TURN_BYTES)):
            return True
        if self._open_line and (now - self._grew_s >= QUIET_S or self._in_history()):
            self._flush()
        self._history_end = 0
        if self._owed and now - self._said_s >= QUIET_S:
            self._say([], history=False)
        return self._check_rotated(now)

    def drain(self, now: float) -> bool:
        """Read a turn's worth; once all is read that is there now, ship the open line (its writer has ended) and return True.

        What others go on to write to it (processes that were left behind) is not waited for.
        """
        if self._fd < 0:
            self.look(now)
        if self._fd >= 0 and (self._drain_to is None or now - self._drain_s > DRAIN_S):
            self._drain_to = (self._file, os.fstat(self._fd).st_size)
            self._drain_s = now
        more = self.look(now)
        if (
            more
            and self._drain_to is not None
            and (self._file != self._drain_to[0] or self._position < self._drain_to[1])
        ):
            return False
        self._drain_to = None
        if self._fd >= 0:
            self._flush()
        return True

    # --- opening

    def _open(self) -> bool:
        try:
            status = os.stat(self.path)
            if not stat.S_ISREG(status.st_mode):  # reading a pipe or terminal would steal from its reader
                self._complain("not a regular file", missing=False)
                return False
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(self._fd)
        except OSError as error:
            self._complain(
                error.strerror or str(error), missing=isinstance(error, (FileNotFoundError, NotADirectoryError))
            )
            return False
        self._unreadable = None
        self._file = (status.st_dev, status.st_ino)
        self._begin_at(0, 0)
        if self._first:
            self._first = False
            self._choose_start(status.st_size, status.st_ino)
        return True

    def _complain(self, error: str, *, missing: bool) -> None:
        offset, inode = self._resume
        if self._first and missing and offset is None and inode is None:
            self._first = False  # a file that comes later is all news
        if self._unreadable != (error, missing):
            self._unreadable = (error, missing)
            self._report.say("LogUnreadable", error=error, missing=missing)

    def _begin_at(self, position: int, lines_before: Optional[int]) -> None:
        self._head = b""
        self._size = position
        self._position = position
        self._count_from = 0
        self._counted = -1 if lines_before is None else lines_before
        self._splitter = LineSplitter(lines_before or 0)
        self._open_line = False
        self._skip_partial = False
        self._history_end = 0

    def _choose_start(self, size: int, inode_now: int) -> None:
        offset, inode = self._resume
        if offset is None:
            start = max(0, size - HISTORY_BYTES)
            self._begin_at(start, None if start else 0)
            self._skip_partial = start > 0 and os.pread(self._fd, 1, start - 1) != b"\n"
            self._history_end = size
        elif inode is not None and inode != inode_now:
            self._report.say("LogReset", why="rotated")
        elif offset > size:
            self._report.say("LogReset", why="truncated")
        else:
            self._begin_at(offset, None if offset else 0)
            if inode is not None:  # the line that was being written then is shipped whole; its number stays
                before = os.pread(self._fd, min(offset, 65536), max(0, offset - 65536))
                self._position -= (
                    len(before) - (before.rfind(b"\n") + 1) if b"\n" in before or len(before) == offset else 0
                )
                self._size = self._position
        self._head = os.pread(self._fd, HEAD_BYTES, 0)

    def _count(self) -> bool:
        """Count the newlines before the start, a part a turn."""
        end = min(self._position, self._count_from + COUNT_BYTES)
        count = 0
        while self._count_from < end:
            part = os.pread(self._fd, min(1 << 20, end - self._count_from), self._count_from)
            if not part:  # truncated under our hands: the next look sees it
                self._count_from = self._position
                break
            count += part.count(b"\n")
            self._count_from += len(part)
        self._splitter.number += count
        if self._count_from >= self._position:
            self._counted = self._splitter.number - 1
        return True

    # --- following

    def _check_truncated(self) -> int:
        size = os.fstat(self._fd).st_size
        if size == self._size:
            return size
        head = os.pread(self._fd, len(self._head), 0) if self._head else b""
        if size < self._position or head != self._head:
            self._flush()
            self._report.say("LogReset", why="truncated")
            self._begin_at(0, 0)
        if len(self._head) < HEAD_BYTES:
            self._head = os.pread(self._fd, min(HEAD_BYTES, size), 0)
        self._size = size
        return size

    def _check_rotated(self, now: float) -> bool:
        try:
            status = os.stat(self.path)
        except OSError:
            return False  # moved away and not there again yet: the open file is still the log
        if (status.st_dev, status.st_ino) == self._file:
            return False
        size = os.fstat(self._fd).st_size
        if size > self._position:  # written between our last read and the rotation
            self._size = size
            self._read(now, min(size, self._position + TURN_BYTES))
            return True
        self._flush()
        self.close()
        self._report.say("LogReset", why="rotated")
        return self._open()

    def _read(self, now: float, end: int) -> bool:
        """Read up to `end`. Return True where the file goes on there."""
        history = self._position < self._history_end
        if history:
            end = min(end, self._history_end)
        begun = self._position
        silent = False
        until_s = time.monotonic() + TURN_S
        while self._position < end and time.monotonic() < until_s:
            spent_s = time.thread_time()
            chunk = os.pread(self._fd, min(self._chunk, end - self._position), self._position)
            if not chunk:
                break
            lines = self._splitter.feed(self._without_partial(chunk))
            while len(lines) > FACT_LINES:  # `size` still names the last place that is safe to resume from
                self._ship(lines[:FACT_LINES], history=history)
                lines = lines[FACT_LINES:]
            self._position += len(chunk)
            self._open_line = not chunk.endswith(b"\n")
            silent = not lines
            if lines:
                self._ship(lines, history=history)
            self._pace(time.thread_time() - spent_s)
        if self._position > begun:
            self._grew_s = now
            if silent:  # growth without a complete line is news as well
                self._ship([], history=history)
        return self._position < self._size

    def _pace(self, took_s: float) -> None:
        """Read more at once where it costs little, less where lines are many or dear: a turn's length hangs on it."""
        if took_s > TURN_S / 4:
            self._chunk = max(SMALLEST_CHUNK_BYTES, self._chunk // 4)
        elif took_s < TURN_S / 16:
            self._chunk = min(CHUNK_BYTES, self._chunk * 2)

    def _without_partial(self, chunk: bytes) -> bytes:
        """Drop the rest of the line in whose middle the history begins."""
        if not self._skip_partial:
            return chunk
        _, newline, rest = chunk.partition(b"\n")
        if newline:
            self._skip_partial = False
            self._splitter.number += 1
        return rest

    def _flush(self) -> None:
        lines = self._splitter.flush() if self._open_line else []
        self._open_line = False
        if lines:
            self._ship(lines, history=self._in_history())
        if self._owed:
            self._say([], history=False)

    def _in_history(self) -> bool:
        return 0 < self._position <= self._history_end

    def _ship(self, lines: List[RawLine], *, history: bool) -> None:
        lines = [RawLine(line.number, strip_escapes(line.raw)) for line in lines]
        skipped = 0
        if self.keep is not None and lines:
            lines, skipped = pick(lines, self.keep)
        clean = self._report.redactor.clean
        shown = [[line.number, clean(show(line.raw))] for line in lines]
        self._skipped += skipped
        if shown or history or self.keep is None:
            self._say(shown, history=history)
        else:  # that a log goes on and nothing in it matters is said once a second
            self._owed = True

    def _say(self, shown: List[List[Any]], *, history: bool) -> None:
        skipped = self._skipped or None
        self._report.say(
            "LogGrew",
            size=self._position,
            lines=shown,
            skipped=skipped,
            history=history or None,
            inode=self._file[1],
        )
        self._skipped = 0
        self._owed = False
        self._said_s = self._looked_s
