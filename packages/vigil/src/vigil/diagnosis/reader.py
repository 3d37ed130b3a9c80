"""Reads the shape of a log: which lines make up a Python traceback, which names the exception, which form one chain.

Tracebacks come in two forms. vLLM logs each line with the prefix of its process, so that several processes can be
told apart while they interleave. SGLang puts a prefix before the first line only; whoever prints in between breaks
in, and lines with a prefix of their own are passed over.
"""

import re
from collections.abc import Iterator

import msgspec

from vigil.diagnosis.prefix import Read
from vigil.diagnosis.text import LogText

HEAD = "Traceback (most recent call last):"
CHAINED = ("The above exception was the direct cause of", "During handling of the above exception")
FRAME = 'File "'
USAGES = ("[-h]", "usage: vllm", "usage: sglang", "usage: llama", "Usage: trtllm", "usage: transformers")
"""What the first line of a usage text holds; "usage:" alone stands in every decode line of SGLang."""
_EXCEPTION = re.compile(r"(?P<name>(?:[A-Za-z_]\w*\.)+\w+|[A-Z]\w*)(?:: ?(?P<message>.*)|:?$)", re.ASCII)
_NOT_AN_EXCEPTION = frozenset({"Killed", "Aborted", "Terminated", "Command", "Output", "Error", "Note", "Exception"})
_FRAME = re.compile(r' *File "(?P<file>[^"]+)", line \d+(?:, in (?P<function>\S+))?')
_USAGE = re.compile(r"(?:\x20{0,2})usage: \S", re.IGNORECASE)
LONGEST = 400
"""Lines after which a traceback without an end is given up."""
_MOST_HEADS = 40
"""Tracebacks that are read: the first, and those before the end. What a server prints must not make this slow."""
_NEAR_FRAMES = 40
_BARE = 'File "'
"""How a frame begins where what carried the log took the indentation away, as forms on the web do."""
_CHAIN_GAP = 8
"""Lines of a long message between an exception and the words that chain it to the next."""


class Raised(msgspec.Struct, frozen=True):
    """The last line of one traceback. `where` is the innermost frame (`core.py run_engine`)."""

    index: int
    message: str
    where: str


class Chain(msgspec.Struct, frozen=True):
    """Exceptions of one failure, the inner (first) one first.

    `head` is the first line; `inside` are all lines but the exceptions.
    """

    head: int
    raised: tuple[Raised, ...]
    inside: frozenset[int]


def read_chains(log: LogText, after: int = -1) -> list[Chain]:
    """Return the first chains of tracebacks behind line `after`, in the order of their first lines."""
    heads = both_ends([index for index in log.find(HEAD) if index > after], _MOST_HEADS)
    chains: list[Chain] = []
    taken: set[int] = set()
    for head in heads:
        if head in taken:
            continue
        raised: list[Raised] = []
        inside: set[int] = set()
        start: int | None = head
        while start is not None:
            inside.add(start)
            one = _read_one(log, start, inside)
            taken.add(start)
            if one is None:
                break
            raised.append(one)
            start = _chained(log, one.index, inside)
        if raised:
            chains.append(Chain(head, tuple(raised), frozenset(inside)))
    return chains


def both_ends(values: list[int], most: int) -> list[int]:
    """Return the values without those in the middle where there are too many: a failure is the first or ends a log."""
    return values if len(values) <= most else values[: most // 2] + values[-(most // 2) :]


def usage_lines(log: LogText) -> set[int]:
    """Return the lines of usage texts (`usage: ...` and what is indented below): flags and help, never a cause."""
    found: set[int] = set()
    for first in sorted(log.find_any(USAGES)):
        if first in found or not _USAGE.match(log.read(first).body):
            continue
        index = first
        while index < len(log) and (index == first or log.read(index).body[:1] in {"", " ", "-"}):
            found.add(index)
            index += 1
    return found


def quoted_lines(log: LogText) -> set[int]:
    """Return the lines of frames without their indentation, and of the source that each quotes."""
    return {at for index in log.find(FRAME) for at in (index, index + 1) if at < len(log) and _is_bare(log, at)}


def _is_bare(log: LogText, index: int) -> bool:
    """Whether a line is a frame without its indentation, or the source right below one."""
    if _is_frame(log, index):
        return True
    above = index - 1
    quotes = above >= 0 and log.apart(above, index) == 1 and _is_frame(log, above)
    return quotes and HEAD not in log.texts[index] and exception_in(log.read(index).body) is None


def _is_frame(log: LogText, index: int) -> bool:
    body = log.read(index).body
    return body.startswith(_BARE) and _FRAME.match(body) is not None


def _following(log: LogText, head: int) -> Iterator[tuple[int, Read]]:
    """Yield the lines that continue what line `head` began, whatever other processes print in between."""
    first = log.read(head)
    after = next((i for i in range(head + 1, min(head + 4, len(log))) if log.texts[i].strip()), None)
    prefixed = after is not None and first.prefixed and log.read(after).prefixed
    last = log.lines[head].number + LONGEST
    for index in range(head + 1, len(log)):
        if log.lines[index].number > last:
            return
        line = log.read(index)
        same = line.prefixed and line.process == first.process if prefixed else not line.prefixed
        if same:
            yield index, line


def _read_one(log: LogText, head: int, inside: set[int]) -> Raised | None:
    """Read one traceback; lines before its exception are added to `inside`."""
    where = ""
    seen: list[int] = []
    for index, line in _following(log, head):
        body = line.body
        if frame := _FRAME.match(body):
            where = f"{frame['file'].rpartition('/')[2]} {frame['function'] or ''}".strip()
        elif body.strip() and body[0] not in " \t":
            match = exception_in(body)
            if match is not None:
                inside.update(seen)
                return Raised(index, (match["message"] or "").strip(), where)
            if HEAD in body:
                return None
            continue  # somebody else's words in between
        seen.append(index)
    return None


def frames_above(log: LogText, index: int, head: int | None) -> list[str]:
    """Return the lines of the traceback that line `index` ends, as far as they are kept; without a head, what is near."""
    first = head if head is not None else max(0, index - _NEAR_FRAMES)
    near = range(index - 1, first - 1, -1)
    close = (i for i in near if log.apart(i, index) <= LONGEST)
    return [log.read(i).body for i in close if log.read(i).body[:1] == " " or _is_bare(log, i)]


def exception_in(body: str) -> re.Match[str] | None:
    """Match an exception's name and message at the start of a line's body."""
    match = _EXCEPTION.match(body)
    if match is None or (match["name"] in _NOT_AN_EXCEPTION and not match["message"]):
        return None
    return match


def _chained(log: LogText, index: int, inside: set[int]) -> int | None:
    """Return the head of the traceback that the exception at `index` led to."""
    linked = False
    for count, (at, line) in enumerate(_following(log, index)):
        if linked and HEAD in line.body:
            return at
        if line.body.startswith(CHAINED):
            linked = True
            inside.add(at)
        elif HEAD in line.body or (not linked and count >= _CHAIN_GAP):
            return None
    return None
