"""The lines of one attempt, made ready for a search.

Many literals are looked for in one text, and a line is taken apart only when it is asked for.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from vigil.diagnosis.fingerprint import without_colours
from vigil.diagnosis.prefix import Read, read_line
from vigil.facts import Line

LONGEST_LINE = 1000
"""Characters of a line that are read: a log line is what anybody could make a server print."""


class LogText:
    """The lines, numbered from 0 here; a line is read (prefix, body) at most once."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.texts = [_plain(line.text) for line in lines]
        self._starts: list[int] = []
        start = 0
        for text in self.texts:
            self._starts.append(start)
            start += len(text) + 1
        self._all = "\n".join(self.texts)
        self._read: dict[int, Read] = {}
        self._found: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, index: int) -> Read:
        """Return line `index` without its prefix."""
        found = self._read.get(index)
        if found is None:
            found = self._read[index] = read_line(self.texts[index])
        return found

    def find(self, literal: str) -> list[int]:
        """Return the indexes of the lines that hold `literal`, in order."""
        if literal in self._found:
            return self._found[literal]
        found = self._found[literal] = []
        at = self._all.find(literal)
        while at >= 0:
            index = bisect_right(self._starts, at) - 1
            found.append(index)
            end = self._starts[index] + len(self.texts[index])
            at = self._all.find(literal, end)
        return found

    def find_any(self, literals: Iterable[str]) -> set[int]:
        """Return the indexes of the lines that hold one of `literals`."""
        return {index for literal in literals for index in self.find(literal)}


def _plain(text: str) -> str:
    plain = without_colours(text[:LONGEST_LINE])
    return " ".join(plain.splitlines()) if "\n" in plain or "\r" in plain else plain
