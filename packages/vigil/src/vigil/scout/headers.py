"""Read the header of a safetensors file: what it says it holds, against the bytes that are there.

The format: eight bytes with the length of the header, the header in JSON, then the data; every tensor says where its bytes lie
(safetensors 0.8: `SafeTensors::read_metadata`, which ends a load for each of the troubles that are told here).
"""

import struct
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .pieces import no_weights, parsed, piece, plain

HEADER_MOST = 100_000_000  # safetensors 0.8: MAX_HEADER_SIZE
READ_MOST = 24 << 20  # of a longer header we say no more than its length
MOST_DIMENSIONS = 16
LENGTH_BYTES = 8
NAME_CHARS = 200
BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class Tensor(NamedTuple):
    """One tensor of a file: its data lie from `begin` to `end`, counted from the file's beginning."""

    dtype: str
    shape: Tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a file holds. `wanted_bytes`: how long it must be.

    `trouble`: why it cannot be loaded, in words; "": its header is longer than what we read.
    """

    tensors: Dict[str, Tensor]
    wanted_bytes: Optional[int] = None
    trouble: Optional[str] = None


def read(path: str, size: int) -> Header:
    """Return what a safetensors file of `size` bytes holds."""
    head = piece(path, 0, 64)
    if head is None:
        return Header({}, None, "it cannot be read")
    known = _no_tensors(head, size)
    if known is not None or len(head) < LENGTH_BYTES:
        return Header({}, None, known or "it changed while it was read")
    length = struct.unpack("<Q", head[:8])[0]
    if length > HEADER_MOST:
        return Header({}, None, "its first eight bytes say a header of %d bytes: it is no safetensors file" % length)
    if 8 + length > size:
        return Header(
            {}, 8 + length, "it has %d bytes, and its header alone ends at %d: it is cut off" % (size, 8 + length)
        )
    if length > READ_MOST:
        return Header({}, None, "")
    try:
        return _checked(parsed((piece(path, 8, length) or b"").rstrip(b" ")), 8 + length, size)
    except ValueError as error:
        return Header({}, None, "its header cannot be read: %s" % plain(str(error))[:200])


def _no_tensors(head: bytes, size: int) -> Optional[str]:
    known = no_weights(head, size)
    if known is not None:
        return known
    return "it has %d bytes, too few for a safetensors file" % size if size < LENGTH_BYTES else None


def _checked(told: Any, start: int, size: int) -> Header:
    """Return the tensors of a parsed header, held against the size of the file; raises ValueError where it is none."""
    if not isinstance(told, dict):
        raise ValueError("it is no table of tensors")  # noqa: TRY004 - told as any other trouble
    tensors = {name[:NAME_CHARS]: _tensor(name, one, start) for name, one in told.items() if name != "__metadata__"}
    wanted = max((one.end for one in tensors.values()), default=start)
    if size < wanted:
        text = "it has %d of the %d bytes that its tensors need: it is cut off" % (size, wanted)
        return Header(tensors, wanted, text)
    if size > wanted:
        return Header(tensors, wanted, "it has %d bytes, and its tensors end at %d" % (size, wanted))
    return Header(tensors, wanted, _gap(tensors, start))


def _tensor(name: str, told: Any, start: int) -> Tensor:
    shown = plain(name)[:80]
    table = told if isinstance(told, dict) else {}
    dtype, shape, offsets = (table.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not (isinstance(dtype, str) and isinstance(shape, list) and isinstance(offsets, list)):
        raise ValueError("%s has no dtype, shape and place" % shown)  # noqa: TRY004 - told as any other trouble
    right = all(type(one) is int and one >= 0 for one in (*shape, *offsets))
    if not right or len(offsets) != len(("begin", "end")) or len(shape) > MOST_DIMENSIONS:
        raise ValueError("%s has a shape or a place that cannot be" % shown)
    count, bits = 1, BITS.get(dtype)
    for one in shape:
        count *= one
    size = offsets[1] - offsets[0]
    if bits is not None and size * 8 != count * bits:
        raise ValueError("%s (%s %s) has %d bytes" % (shown, dtype, "x".join(map(str, shape))[:80], size))
    return Tensor(plain(dtype)[:20], tuple(shape), start + offsets[0], start + offsets[1])


def _gap(tensors: Dict[str, Tensor], start: int) -> Optional[str]:
    """Return where bytes belong to no tensor, or to two; safetensors refuses both."""
    places: List[Tuple[int, int, str]] = sorted((one.begin, one.end, name) for name, one in tensors.items())
    for begin, end, name in places:
        if begin != start:
            return "the data of %s begin at %d and not at %d" % (plain(name)[:80], begin, start)
        start = end
    return None
