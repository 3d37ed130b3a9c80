"""Put changed words back into the command that they were taken from: into a shell's text, in the quotes that it had."""

import re
import shlex
from bisect import bisect_right
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from vigil.engines.commandline import flatten, reglued, split, unglued

_DEEPEST = 5
_MOST = 2000  # words: what follows takes time with their square
_BLANK = re.compile(r"(?:\\\n|[ \t\r])+")
_TOKEN = re.compile(r"""\n|[;&|()]+|(?:[^\s;&|()'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")+""")


class Change(NamedTuple):
    """Words `first` to before `last` make way for `put`."""

    first: int
    last: int
    put: tuple[str, ...]


def rewritten(argv: Sequence[str], words: Sequence[str], changed: Sequence[str]) -> tuple[str, ...] | None:
    """Return `argv` so that it flattens to `changed`, None where that cannot be done; `words` are the first that it flattens to.

    What no change touches stays as it was written: quotes, variables, redirections, all that follows in the text.
    """
    if tuple(argv) == tuple(words):
        return tuple(changed)
    written, argv = argv, unglued(argv)
    if len(argv) > _MOST or len(words) > _MOST:
        return None
    matcher = SequenceMatcher(a=list(words), b=list(changed), autojunk=False)
    changes = [
        Change(first, last, tuple(changed[start:end]))
        for what, first, last, start, end in matcher.get_opcodes()
        if what != "equal"
    ]
    placed = _placed(argv, changes, 0)
    if placed is None:
        return None
    found = list(argv)
    for one in reversed(placed):
        found[one.first : one.last] = one.put
    return reglued(found, written) if flatten(found)[: len(changed)] == tuple(changed) else None


def _placed(argv: Sequence[str], changes: list[Change], depth: int) -> list[Change] | None:
    """Return changes of flattened words as changes of the words of `argv`, None where one goes beyond a text."""
    ends = [len(flatten(argv[: count + 1])) for count in range(len(argv))]
    starts, whole = [0, *ends[:-1]], flatten(argv)
    found: list[Change] = []
    texts: dict[int, list[Change]] = {}
    for one in changes:
        added = one.first == one.last
        first = bisect_right(ends, one.first - added if one.first else 0)
        last = bisect_right(ends, max(one.first, one.last - 1)) if not added else first
        if last >= len(argv):
            return None
        is_text = [ends[at] != starts[at] + 1 or argv[at] != whole[starts[at]] for at in range(first, last + 1)]
        if is_text == [True]:
            texts.setdefault(first, []).append(
                one._replace(first=one.first - starts[first], last=one.last - starts[first])
            )
        elif any(is_text):
            return None
        else:
            found.append(one._replace(first=first + added, last=last + 1))
    for at, inside in texts.items():
        text = _text(argv[at], inside, depth)
        if text is None:
            return None
        found.append(Change(at, at + 1, (text,)))
    return sorted(found)


def _text(text: str, changes: list[Change], depth: int) -> str | None:
    """Return a shell's text with changes of the words that it flattens to."""
    spans, tokens = _spans(text), split(text)
    if depth >= _DEEPEST or [value for _, _, value in spans] != list(tokens):
        return None
    placed = _placed(tokens, changes, depth + 1)
    for one in reversed(placed or ()):
        put = " ".join(_quoted(word) for word in one.put)
        if one.first == one.last:  # behind the word before it
            end = spans[one.first - 1][1] if one.first else 0
            text = f"{text[:end]} {put}{text[end:]}"
        else:
            begin, end = spans[one.first][0], spans[one.last - 1][1]
            begin = begin if put or not one.first else spans[one.first - 1][1]
            text = text[:begin] + put + text[end:]
    return text if placed is not None else None


def _quoted(word: str) -> str:
    """Return a word in a shell's quotes that leave its variables alive."""
    if "$" not in word and "`" not in word:
        return shlex.quote(word)
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _spans(text: str) -> list[tuple[int, int, str]]:
    """Return where each word of a shell's text begins and ends, and what it is without its quotes."""
    found, at = [], 0
    while at < len(text):
        blank = _BLANK.match(text, at)
        token = _TOKEN.match(text, blank.end() if blank else at)
        if token is None:
            break
        at = token.end()
        value = ";" if token.group() == "\n" else token.group()
        found.append((token.start(), at, value if value[0] in ";&|()" else "".join(split(value))))
    return found
