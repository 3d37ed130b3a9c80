r"""Keeps, of a log of any size, the few lines of each life that a diagnosis could want.

One search for all wanted literals runs over whole blocks (an Aho-Corasick automaton over bytes); Python looks at a line
only where something was found. Of lines that are alike but for their numbers the first few are kept with their
surroundings, of later ones only the last; the end of a life is kept as it is. So neither a flood of errors nor a
gigabyte of bars costs memory, and what is kept does not depend on the pieces in which the bytes came.
"""

import functools
from bisect import bisect_right
from collections.abc import Callable

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from vigil.diagnosis.blocks import LINE_BYTES
from vigil.diagnosis.lives import Lives
from vigil.diagnosis.wanted import WantedTexts
from vigil.facts import Line
from vigil.observer.lines import show
from vigil.screen import hide_secrets

ALIKE = 4
"""Lines of one shape that are kept with what is around them."""
SHAPES = 2000
"""Shapes of one life that are told apart; lines of further ones are kept only at the life's end."""
SHAPE_BYTES = 160
AROUND = 3
HEAD_LINES = 40
FLOOD = 300
"""Hits in a block from which on a second search of it is cheaper than a look at each line."""
TAIL_BYTES = 128 << 10
_DIGITS = b"0123456789"
_NEWLINE = 10


Search = Callable[[bytes], list[tuple[int, int, int]]]
"""Finds, in bytes: (which text, where it begins, where it ends)."""


Kept = tuple[Line, ...]
"""One life as far as it was kept: its lines in order, with gaps."""


class Sieve:
    """Takes blocks, hands lives to `give` as they end. `lives` says where one begins; `flood`: see `FLOOD`."""

    def __init__(
        self,
        wanted: WantedTexts,
        lives: Lives,
        give: Callable[[Kept], None],
        lines_before: int = 0,
        flood: int = FLOOD,
    ) -> None:
        self._flood = flood
        self._lives = lives
        self._give = give
        known = {one.text.encode(): one for one in wanted.texts}
        self._runs = {text.lstrip(b"\n"): one.after for text, one in known.items() if one.after > AROUND}
        self._lasting = {text: one.ends for text, one in known.items() if one.ends is not None}
        self._always = frozenset(known.keys() - self._lasting.keys()) | lives.texts
        self._turns = _search_for(lives.texts)
        self._data = b""  # the block, behind a few lines of the one before
        self._offset = 0  # where that begins in the log
        self._at = 0  # what stands before it in `data` was looked at
        self._number = lines_before + 1  # of the line there
        self._begin()

    def take(self, block: bytes) -> None:
        """Look at the lines of a block (see `Blocks`)."""
        if not self._offset and not self._data:
            first = _line_end(block, 0)
            self._lives.open(_text(block, 0, first), _text(block, first, _line_end(block, first)))
        before = self._leave()
        self._data, self._offset = before + block, self._offset + len(self._data) - len(before)
        self._at = self._new = len(before)
        hits = self._search(self._data)
        life, telling = self._from, self._telling() if len(hits) > self._flood else None
        for _, start, end in hits:
            if end <= self._at:
                continue  # the line was looked at
            if telling is not None and self._from != life:
                telling = None  # more texts tell something in another life
            begin = _line_begin(self._data, end - 1)
            if begin > self._at:
                self._pass(begin)
            if start - begin < LINE_BYTES:
                stop = _line_end(self._data, end)
                if telling is None or not self._is_of_flood(stop, telling):
                    self._look(stop, wanted=True)
        self._pass(len(self._data))

    def close(self) -> None:
        """Hand out the last life."""
        self._end()

    def _begin(self) -> None:
        """Begin a life at the present line."""
        self._from = self._offset + self._at
        self._new = self._at  # from here on the block is not in `tail` yet
        self._tail = b""
        self._kept: dict[int, tuple[int, bytes]] = {}
        self._latest: dict[bytes, tuple[int, int, bytes]] = {}
        self._shapes: dict[bytes, int] = {}
        self._left = dict(self._lasting)
        self._tells: Search | None = None
        self._search = _search_for(self._always.union(self._left))
        self._owed = HEAD_LINES

    def _end(self) -> None:
        """Hand the present life out."""
        self._save_tail()
        end = self._offset + self._at
        if end == self._from:
            return
        kept = {position: (number, line) for position, number, line in self._latest.values()} | self._kept
        kept |= _lines_of(self._tail, end, self._number, whole=end - len(self._tail) == self._from)
        lines = tuple(Line(number, hide_secrets(show(line))) for _, (number, line) in sorted(kept.items()) if line)
        self._give(lines)

    def _leave(self) -> bytes:
        """Take leave of a block; return its last lines, which may stand before something in the next."""
        self._save_tail()
        begin = self._at
        for _ in range(AROUND):
            begin = _line_begin(self._data, max(begin - 1, 0))
        return self._data[max(begin, self._at - LINE_BYTES) : self._at]

    def _save_tail(self) -> None:
        self._tail = (self._tail + self._data[max(self._new, self._at - TAIL_BYTES) : self._at])[-TAIL_BYTES:]
        self._new = self._at

    def _pass(self, to: int) -> None:
        """Go on to `to`, where the next line stands that holds something; keep what is owed on the way."""
        while self._at < to:
            begin = self._at if self._owed or self._lives.awaits else self._opening(to)
            self._number += self._data.count(b"\n", self._at, begin)
            self._at = begin
            if begin < to:
                self._look(_line_end(self._data, begin), wanted=False)

    def _opening(self, to: int) -> int:
        """Return where a line stands before `to` that may open another life, else `to`."""
        part = self._lives.seeks
        found = self._data.find(part, self._at, to) if part else -1
        return to if found < 0 else _line_begin(self._data, found)

    def _look(self, end: int, *, wanted: bool) -> None:
        """Look at the line from here to `end`; `wanted`: it holds something."""
        line = _text(self._data, self._at, end)
        if (self._lives.awaits or self._turns_on(line, wanted=wanted)) and self._lives.see(line, self._before()):
            self._end()
            self._begin()
        position = self._offset + self._at
        if wanted and self._left:
            self._spend(line)
        shape = _shape(line) if wanted else b""
        if wanted and self._is_new(shape):
            self._keep_before()
            self._owed = max(
                self._owed, 1 + max((self._runs[run] for run in self._runs if run in line), default=AROUND)
            )
        elif wanted and shape in self._shapes:
            self._latest[shape] = (position, self._number, line)
        if self._owed:
            self._owed -= 1
            self._kept[position] = (self._number, line)
        self._number += self._data[end - 1] == _NEWLINE
        self._at = end

    def _telling(self) -> list[int]:
        """Return where in the block a text stands that says more of a line than that it is wanted, by the texts' ends."""
        if self._tells is None:
            self._tells = _build(self._lives.texts.union(self._left))
        return [end for _, _, end in self._tells(self._data)]

    def _is_of_flood(self, end: int, telling: list[int]) -> bool:
        """Take the line from here to `end` where it is like many before it, and return True; `_look` would do no more.

        Of a log full of errors nearly all lines are, so that this is what such a log costs.
        """
        if self._owed or self._lives.awaits:
            return False
        place = bisect_right(telling, self._at)
        if place < len(telling) and telling[place] <= end:
            return False
        line = _text(self._data, self._at, end)
        seeks = self._lives.seeks
        if seeks and seeks in line:
            return False
        shape = _shape(line)
        seen = self._shapes.get(shape, 0)
        if seen < ALIKE and (seen or len(self._shapes) < SHAPES):
            return False
        if seen:
            self._latest[shape] = (self._offset + self._at, self._number, line)
        self._number += self._data[end - 1] == _NEWLINE
        self._at = end
        return True

    def _turns_on(self, line: bytes, *, wanted: bool) -> bool:
        seeks = self._lives.seeks
        return (wanted and bool(self._turns(line))) or (bool(seeks) and seeks in line)

    def _spend(self, line: bytes) -> None:
        """Count the lines that a server prints for as long as it works: after the first ones only the last matter."""
        spent = [text for text in self._left if text in line]
        for text in spent:
            self._left[text] -= 1
        if any(self._left[text] <= 0 for text in spent):
            self._left = {text: left for text, left in self._left.items() if left > 0}
            self._tells = None
            self._search = _search_for(self._always.union(self._left))

    def _is_new(self, shape: bytes) -> bool:
        """Count a line's shape; return True where it was not seen often in this life."""
        seen = self._shapes.get(shape, 0)
        if not seen and len(self._shapes) >= SHAPES:
            return False
        self._shapes[shape] = seen + 1
        return seen < ALIKE

    def _before(self) -> bytes:
        """Return the line right before the present one."""
        return _text(self._data, _line_begin(self._data, max(self._at - 1, 0)), self._at) if self._at else b""

    def _keep_before(self) -> None:
        """Keep the lines before this one, as far as they belong to this life."""
        at, number = self._at, self._number
        for _ in range(AROUND):
            if self._offset + at <= self._from or at == 0:
                return
            begin = _line_begin(self._data, at - 1)
            number -= self._data[at - 1] == _NEWLINE
            self._kept.setdefault(self._offset + begin, (number, _text(self._data, begin, at)))
            at = begin


@functools.lru_cache(maxsize=4)  # an automaton takes some megabytes
def _search_for(texts: frozenset[bytes]) -> Search:
    """Return a search for all of `texts` at once."""
    return _build(texts)


def _build(texts: frozenset[bytes]) -> Search:
    known = sorted(texts)
    found = BytesAhoCorasick(known, matchkind=MatchKind.LeftmostFirst, implementation=Implementation.DFA)
    return found.find_matches_as_indexes


def _shape(line: bytes) -> bytes:
    return line[:SHAPE_BYTES].translate(None, _DIGITS)


def _text(data: bytes, begin: int, end: int) -> bytes:
    return data[begin : min(end, begin + LINE_BYTES)].rstrip(b"\r\n")


def _line_begin(data: bytes, at: int) -> int:
    """Return where the line begins in which `at` lies."""
    begin = data.rfind(b"\n", 0, at) + 1
    return max(begin, data.rfind(b"\r", begin, at) + 1)


def _line_end(data: bytes, at: int) -> int:
    """Return where the line behind `at` begins."""
    end = data.find(b"\n", at) + 1 or len(data)
    return data.find(b"\r", at, end) + 1 or end


def _lines_of(data: bytes, end: int, number: int, *, whole: bool) -> dict[int, tuple[int, bytes]]:
    """Return the lines of a life's tail by position: `end` is where it ends, in the line `number` or right before it."""
    at = 0 if whole else _line_end(data, 0)
    number -= data.count(b"\n", at)
    found = {}
    while at < len(data):
        stop = _line_end(data, at)
        found[end - len(data) + at] = (number, _text(data, at, stop))
        number += data[stop - 1] == _NEWLINE
        at = stop
    return found
