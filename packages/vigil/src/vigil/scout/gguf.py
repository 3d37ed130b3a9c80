"""Read the head of a GGUF file: its metadata, how many tokens it knows, and whether the data of all tensors are there.

The format: ggml's docs/gguf.md; sizes of the types: gguf 0.19, `GGML_QUANT_SIZES`.
"""

import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .pieces import no_weights, piece, plain

HEAD_MOST = 32 << 20  # of a longer head we say nothing
CHUNK = 1 << 20
MOST_ENTRIES = 4096
MOST_TENSORS = 200_000
MOST_TEXTS = 3_000_000
MOST_KEPT = 120
MOST_DIMENSIONS = 8
KEPT_CHARS = 120
STRING, ARRAY = 8, 9
TOKENS = "tokenizer.ggml.tokens"
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
# (elements of a block, its bytes) by ggml_type
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110),
    12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98),
    19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36),
}  # fmt: skip


class Gguf(NamedTuple):
    """What a file says of itself. `metadata`: its single values; `lengths`: of its lists. `trouble`: why it cannot be loaded."""

    version: int = 0
    metadata: Dict[str, Any] = {}  # noqa: RUF012 - a default that nobody changes
    lengths: Dict[str, int] = {}  # noqa: RUF012 - as above
    tensors: int = 0
    wanted_bytes: Optional[int] = None
    trouble: Optional[str] = None


class _Cut(Exception):  # noqa: N818 - it is an answer, not an error
    """The file ends within the head."""


class _TooLong(Exception):  # noqa: N818 - as above
    """The head is longer than what is read of it."""


class _Cursor:
    """A place in a file that only goes forward. Invariant: `_at` is where `_data` begins; no more than HEAD_MOST is read."""

    def __init__(self, path: str, size: int) -> None:
        self._path, self._size = path, size
        self._data, self._at, self._next, self._texts = b"", 0, 0, 0

    @property
    def place(self) -> int:
        """The offset of the next byte."""
        return self._at + self._next

    def take(self, size: int) -> bytes:
        """Return the next bytes; raises `_Cut` where they are not there."""
        if self._next + size > len(self._data):
            if self.place + size > self._size:
                raise _Cut
            if self.place + size > HEAD_MOST:
                raise _TooLong
            more = piece(self._path, self._at + len(self._data), max(size, CHUNK)) or b""
            self._data, self._at, self._next = self._data[self._next :] + more, self.place, 0
            if size > len(self._data):
                raise _Cut
        found = self._data[self._next : self._next + size]
        self._next += size
        return found

    def number(self, form: str) -> Any:
        """Return the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        """Return the next text."""
        return self.take(self.number("<Q")).decode("utf-8", "replace")

    def pass_over(self, kind: int, count: int, deep: int = 4) -> None:
        """Go over the items of a list."""
        if kind in _SCALARS:
            self.take(struct.calcsize(_SCALARS[kind]) * count)
        elif kind == STRING and self._texts + count <= MOST_TEXTS:
            self._texts += count
            for _ in range(count):
                self.take(self.number("<Q"))
        elif kind == ARRAY and deep > 0 and count <= MOST_ENTRIES:
            for _ in range(count):
                self.pass_over(self.number("<I"), self.number("<Q"), deep - 1)
        else:
            raise ValueError("a list of %d items has the type %d" % (count, kind))


def read(path: str, size: int) -> Gguf:
    """Return what a GGUF file of `size` bytes says of itself."""
    head = piece(path, 0, 64)
    if head is None:
        return Gguf(trouble="it cannot be read")
    known = _no_gguf(head, size)
    if known is not None:
        return Gguf(trouble=known)
    cursor = _Cursor(path, size)
    try:
        cursor.take(4)
        return _read(cursor, size)
    except _TooLong:
        return Gguf(trouble="")
    except _Cut:
        return Gguf(trouble="it ends within its head, at %d bytes: it is cut off" % size)
    except ValueError as error:
        return Gguf(trouble="its head cannot be read: %s" % plain(str(error))[:200])


def tokens(path: str, size: int) -> Optional[List[bytes]]:
    """Return the texts of a file's tokens in order, or None where it has none that can be read."""
    cursor = _Cursor(path, size)
    try:
        cursor.take(16)
        for _ in range(min(cursor.number("<Q"), MOST_ENTRIES)):
            name, kind = cursor.text(), cursor.number("<I")
            if kind != ARRAY:
                _value(cursor, kind)
                continue
            kind, items = cursor.number("<I"), cursor.number("<Q")
            if name == TOKENS and kind == STRING and items <= MOST_TEXTS:
                return [cursor.take(cursor.number("<Q")) for _ in range(items)]
            cursor.pass_over(kind, items)
    except (_TooLong, _Cut, ValueError):
        pass
    return None


def _no_gguf(head: bytes, size: int) -> Optional[str]:
    known = no_weights(head, size)
    if known is not None:
        return known
    return None if head.startswith(b"GGUF") else "it begins with %r and not with GGUF: it is no GGUF file" % head[:4]


def _read(cursor: _Cursor, size: int) -> Gguf:
    version = cursor.number("<I")
    if version not in (2, 3):
        raise ValueError("its version is %d%s" % (version, " (big-endian)" if version >= 1 << 24 else ""))
    count, entries = cursor.number("<Q"), cursor.number("<Q")
    if entries > MOST_ENTRIES or count > MOST_TENSORS:
        raise ValueError("it says that it has %d entries and %d tensors" % (entries, count))
    metadata: Dict[str, Any] = {}
    lengths: Dict[str, int] = {}
    for _ in range(entries):
        name, kind = plain(cursor.text())[:KEPT_CHARS], cursor.number("<I")
        if kind == ARRAY:
            kind, items = cursor.number("<I"), cursor.number("<Q")
            lengths[name] = items
            cursor.pass_over(kind, items)
            continue
        value = _value(cursor, kind)
        if len(metadata) < MOST_KEPT or name.startswith("general."):
            metadata[name] = value
    wanted = _end_of(cursor, count, metadata.get("general.alignment"))
    kept = {name: lengths[name] for name in list(lengths)[:MOST_KEPT]}
    trouble = None
    if wanted > size:
        trouble = "it has %d of the %d bytes that its tensors need: it is cut off" % (size, wanted)
    return Gguf(version, metadata, kept, count, wanted, trouble)


def _value(cursor: _Cursor, kind: int) -> Any:
    if kind == STRING:
        return plain(cursor.text())[:KEPT_CHARS]
    if kind not in _SCALARS:
        raise ValueError("a value has the type %d" % kind)
    value = cursor.number(_SCALARS[kind])
    return None if value != value else value  # noqa: PLR0124 - no number: JSON has none


def _end_of(cursor: _Cursor, count: int, alignment: Any) -> int:
    """Return where the data of the last tensor end, counted from the file's beginning."""
    last = 0
    for _ in range(count):
        cursor.take(cursor.number("<Q"))
        dimensions = cursor.number("<I")
        if dimensions > MOST_DIMENSIONS:
            raise ValueError("a tensor has %d dimensions" % dimensions)
        elements = 1
        for _ in range(dimensions):
            elements *= cursor.number("<Q")
        last = max(last, _place_end(cursor.number("<I"), elements, cursor.number("<Q")))
    step = alignment if isinstance(alignment, int) and 0 < alignment <= 1 << 20 else 32
    start = -(-cursor.place // step) * step
    return start + last if last else 0  # a first part may hold metadata alone


def _place_end(kind: int, elements: int, offset: int) -> int:
    block: Tuple[int, int] = _BLOCKS.get(kind, (1, 0))  # of a type that we do not know only the beginning counts
    return offset + elements // block[0] * block[1]
