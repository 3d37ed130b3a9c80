"""The lines of one attempt, made ready for a search.

Many literals are looked for at once, and a line is taken apart only when it is asked for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from vigil.diagnosis.carrier import without_carriers
from vigil.diagnosis.fingerprint import without_colours
from vigil.diagnosis.literals import Literals
from vigil.diagnosis.prefix import Read, read_line
from vigil.facts import Line

LONGEST_LINE = 1000
"""Characters of a line that are read: a log line is what anybody could make a server print."""


class LogText:
    """The lines, numbered from 0 here; a line is read (prefix, body) at most once. `shown`: with what carried them.

    The lines may be some of a log only: what is near another line is told by `Line.number`, never by the index.
    """

    def __init__(self, lines: Sequence[Line], literals: Literals) -> None:
        self.lines = lines
        self.shown = [_plain(line.text) for line in lines]
        self.texts = without_carriers(self.shown)
        self._read: dict[int, Read] = {}
        self._found = literals.find(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, index: int) -> Read:
        """Return line `index` without its prefix."""
        found = self._read.get(index)
        if found is None:
            found = self._read[index] = read_line(self.texts[index])
        return found

    def find(self, literal: str) -> list[int]:
        """Return the indexes of the lines that hold `literal`, in order; raise `KeyError` for one never searched."""
        return self._found[literal]

    def find_any(self, literals: Iterable[str]) -> set[int]:
        """Return the indexes of the lines that hold one of `literals`."""
        return {index for literal in literals for index in self._found[literal]}

    def last_before(self, literals: Iterable[str], index: int) -> int | None:
        """Return the last line before `index` that holds one of `literals`."""
        rows = (self._found[literal] for literal in literals)
        return max((row[place - 1] for row in rows if (place := bisect_left(row, index))), default=None)

    def first_after(self, literals: Iterable[str], index: int) -> int | None:
        """Return the first line after `index` that holds one of `literals`."""
        rows = (self._found[literal] for literal in literals)
        return min((row[place] for row in rows if (place := bisect_right(row, index)) < len(row)), default=None)

    def apart(self, one: int, other: int) -> int:
        """Return how many lines of the whole log lie from one line to another."""
        return abs(self.lines[other].number - self.lines[one].number)


def _plain(text: str) -> str:
    plain = without_colours(text[:LONGEST_LINE])
    return " ".join(plain.splitlines()) if "\n" in plain or "\r" in plain else plain
