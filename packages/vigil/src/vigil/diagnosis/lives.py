"""Says where, in a log of many lives, one ends and the next begins: by banners, a supervisor's words, a repeated opening."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib import resources

import msgspec

from vigil.engine_table import EngineTable

_DIGITS = re.compile(rb"\d+")
_WRITER = re.compile(rb"^\S+(?= +\| )|\([A-Za-z_]\w*|(?<= )(?:DP|TP|PP)\d+")
_CHILD = re.compile(rb"(?:\S+ +\| )?\[ {0,4}\d{1,5}\] ")
"""llama-server as a router (2026) passes the lines of each of its children on behind the child's port."""
_OWN = re.compile(
    rb"\([A-Za-z]\w* pid=|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [A-Z]+\d+)*\] "
    rb"|\b(?:INFO|WARNING|ERROR) \d\d-\d\d |\d+\.\d\d\.\d{3}\.\d{3} [EWID] |(?:Error|Exception): |\bFile \"|^\s{2}"
)
"""A line that an engine wrote itself, an exception, or a piece of its traceback: no supervisor's word."""
_CLOCK = re.compile(rb"\b(\d\d):(\d\d):(\d\d)\b")
_CLOCK_BYTES = 80
_TOGETHER_S = 5
"""Seconds within which several processes of one start (ranks, workers behind a router) print their banners."""
_MOST_BANNERS = 10_000
"""Banner lines that are remembered, to know one that is printed again: a log that was written twice."""
_UNFIT = re.compile(
    rb"^\s| {5,}[^\s|]|(?:[\]|] |>: ?) {4}\S|\bFile \"|Traceback|Warning: |[^\s:]Error\b|\d+%\||it/s\]|s/it\]|% Completed"
    rb"|HTTP/1\.[01]\"|Received sigquit|SIGQUIT"
)
"""What no log begins with: the rest of a traceback, a bar, an answer. Such lines come again within a life."""
_SHORTEST_OPENING = 12
_LONGEST_OPENING = 200


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a supervisor says; see `lives.toml`."""

    text: str
    pattern: str | None = None


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ends: tuple[Word, ...]
    again: tuple[Word, ...]
    between: tuple[Word, ...]
    openings: tuple[Word, ...]
    last: tuple[Word, ...]
    starts: tuple[Word, ...]
    parents: tuple[Word, ...]


class _Spoken:
    """Words, made ready to be looked for in bytes."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.known = [(one.text.encode(), re.compile(one.pattern.encode()) if one.pattern else None) for one in words]

    def __contains__(self, line: bytes) -> bool:
        return self.found(line) is not None

    def found(self, line: bytes) -> bytes | None:
        """Return the first text that the line says, or None."""
        return next(
            (text for text, pattern in self.known if text in line and (not pattern or pattern.search(line))), None
        )


@cache
def _words() -> _Words:
    text = (resources.files("vigil.diagnosis") / "lives.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), _Words)


class Lives:
    """Follows one log. `texts` are the literals whose lines it must see; `awaits`: it must see the very next line.

    `awaits` is set once somebody said that a life is over.
    """

    def __init__(self, tables: Sequence[EngineTable]) -> None:
        words = _words()
        self._ends, self._starts, self._between = map(_Spoken, (words.ends, words.starts, words.between))
        self._again, self._parents = _Spoken(words.again), _Spoken(words.parents)
        banners = (Word(text, table.banner_pattern) for table in tables for text in table.banners)
        self._banners, self._openings = _Spoken(tuple(banners)), _Spoken(words.openings)
        self._banner_texts = {text for text, _ in self._banners.known}
        self._fatal = [text.encode() for table in tables for text in table.fatal_lines]
        self._fatal += [word.text.encode() for word in words.last]
        self._opening = self._part = b""
        self._seen: set[tuple[bytes, bytes]] = set()  # banners of this life, each with who wrote it
        self._printed: set[bytes] = set()  # banner lines with a time of day, of any life
        self._began_s: int | None = None  # when this life's last banner was printed that came together with its first
        self._over = self._used = self._parent = False
        self.awaits = False

    @property
    def texts(self) -> frozenset[bytes]:
        """Return the literals to look for."""
        spoken = (self._ends, self._again, self._starts, self._banners, self._openings, self._parents)
        return frozenset([*(text for words in spoken for text, _ in words.known), *self._fatal])

    def open(self, line: bytes, following: bytes = b"") -> None:
        """Learn how the log begins: when that comes again after an end, it is another life.

        A log that begins within a traceback (`following` is the second line) has no beginning that could come again.
        """
        if _UNFIT.search(line) or _UNFIT.match(following):
            return
        self._opening = _shape(line)
        part = max(_DIGITS.split(line[:_LONGEST_OPENING]), key=len)
        self._part = part if len(part) >= _SHORTEST_OPENING else b""

    @property
    def seeks(self) -> bytes:
        """Return a part of the line that would be another life's first, once the present one gave up; else nothing."""
        return self._part if self._over else b""

    def see(self, line: bytes, before: bytes = b"") -> bool:
        """Take a line that holds one of `texts`, or any while `awaits`; return True where another life begins with it.

        `before` is the line right before it: what is printed twice in a row (through two `tee`s) happened once.
        """
        if before == line and self._banners_in(line):
            return False
        if self.awaits and (not line.strip() or (line in self._between and line not in self._starts)):
            return False
        self._parent = self._parent or line in self._parents
        if self._parent and _CHILD.match(line):
            return False
        told = line in self._ends or (self._over and line in self._again and not _OWN.search(line))
        begun = not told if self.awaits else self._is_first(line)
        if begun:
            told = self._over = self.awaits = self._parent = False
            self._seen.clear()
            self._began_s = None
        self._used = True
        self._note(line, self._banners_in(line))
        self._over = self._over or told or any(text in line for text in self._fatal)
        self.awaits = self.awaits or told
        return begun

    def _is_first(self, line: bytes) -> bool:
        if line in self._starts:
            return self._used
        printed = self._banners_in(line)
        if printed and (line in self._printed or (not self._over and self._together(line))):
            return False
        again = self._seen.intersection(printed)
        banner = any(text in self._banner_texts for text, _ in (printed if self._over else again))
        if banner or (again and self._over):
            return True
        return self._over and bool(self._part) and _shape(line) == self._opening

    def _note(self, line: bytes, printed: list[tuple[bytes, bytes]]) -> None:
        """Remember the banners of a line, and when it was printed."""
        clock = _clock_s(line) if printed else None
        if clock is not None:
            if len(self._printed) < _MOST_BANNERS:
                self._printed.add(line)
            if not self._seen or self._together(line):
                self._began_s = clock
        self._seen.update(printed)

    def _together(self, line: bytes) -> bool:
        """Whether a banner comes right after one of this life: another process of the same start prints it."""
        clock = _clock_s(line)
        return clock is not None and self._began_s is not None and 0 <= clock - self._began_s <= _TOGETHER_S

    def _banners_in(self, line: bytes) -> list[tuple[bytes, bytes]]:
        """Return the banners that a line holds, with who wrote it: nodes and engines of one start each print theirs."""
        texts = (self._banners.found(line), self._openings.found(line))
        return [(text, _writer(line[: line.find(text)])) for text in texts if text is not None]


def _writer(head: bytes) -> bytes:
    """Return what a line's prefix says of its process, but for times and pids."""
    return b" ".join(_WRITER.findall(head))


def _clock_s(line: bytes) -> int | None:
    """Return the time of day that a line's head tells, in seconds."""
    found = _CLOCK.search(line, 0, _CLOCK_BYTES)
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) if found else None


def _shape(line: bytes) -> bytes:
    """Return what two lines that differ in numbers only have in common."""
    return _DIGITS.sub(b"0", line)
