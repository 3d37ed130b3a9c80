"""One search for many literals: which lines of a text hold which of them.

Measured with 190 literals: 328 MB/s, against 11 for one alternation of a regular expression (docs/results).
"""

from collections.abc import Iterable

from ahocorasick_rs import BytesAhoCorasick

_NEWLINE = "\n"


class Literals:
    """Texts to search for. Invariant: what is asked for later was among them, so that nothing is missed in silence."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted({text for text in texts if text and _NEWLINE not in text}))
        self._search = BytesAhoCorasick([text.encode() for text in self.texts])

    def find(self, lines: list[str]) -> dict[str, list[int]]:
        """Return, for each text, the indexes of the lines that hold it, in order."""
        found: dict[str, list[int]] = {text: [] for text in self.texts}
        rows = [line.encode("utf-8", "replace") for line in lines]
        hits = self._search.find_matches_as_indexes(b"\n".join(rows), overlapping=True)
        by_number = [found[text] for text in self.texts]
        row, end = 0, len(rows[0]) if rows else 0
        for which, _start, stop in hits:
            while stop > end:
                row += 1
                end += len(rows[row]) + 1
            where = by_number[which]
            if not where or where[-1] != row:
                where.append(row)
        return found
