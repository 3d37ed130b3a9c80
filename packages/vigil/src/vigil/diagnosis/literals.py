"""One search for many literals: which lines of a text hold which of them.

Measured with 190 literals: 328 MB/s, against 11 for one alternation of a regular expression (docs/results).
"""

from collections.abc import Iterable, Iterator

from ahocorasick_rs import BytesAhoCorasick

_NEWLINE = "\n"
_PIECE_BYTES = 16 << 10
"""Searched at once. A hostile line holds a hundred hits, each an object: with all of a log's at a time half goes into memory."""


class Literals:
    """Texts to search for. Invariant: what is asked for later was among them, so that nothing is missed in silence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted({text for text in texts if text and _NEWLINE not in text}))
        self._search = BytesAhoCorasick([text.encode() for text in self.texts])

    def find(self, lines: list[str]) -> dict[str, list[int]]:
        """Return, for each text, the indexes of the lines that hold it, in order."""
        found: dict[str, list[int]] = {text: [] for text in self.texts}
        by_number = [found[text] for text in self.texts]
        last = [-1] * len(by_number)
        for first, rows in _pieces([line.encode("utf-8", "replace") for line in lines]):
            place, end = 0, len(rows[0])
            for which, _, stop in self._search.find_matches_as_indexes(b"\n".join(rows), overlapping=True):
                while stop > end:
                    place += 1
                    end += len(rows[place]) + 1
                if last[which] != first + place:
                    last[which] = first + place
                    by_number[which].append(first + place)
        return found


def _pieces(rows: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the rows in pieces, each with the number of its first row."""
    first = size = 0
    for number, row in enumerate(rows):
        size += len(row)
        if size >= _PIECE_BYTES:
            yield first, rows[first : number + 1]
            first, size = number + 1, 0
    if first < len(rows):
        yield first, rows[first:]
