"""Pick the lines that hold one of a few hundred texts, quickly."""

from bisect import bisect_right
from typing import List, Sequence, Tuple

from .lines import RawLine


def pick(lines: Sequence[RawLine], texts: Sequence[bytes]) -> Tuple[List[RawLine], int]:
    """Return the lines that hold one of `texts`, in order, and how many were left out.

    The lines are searched as one block: two hundred searches in a block cost a fraction of two hundred for each line.
    """
    block = b"\n".join(line.raw for line in lines)
    found = [text for text in texts if text in block]
    if not found:
        return [], len(lines)
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line.raw) + 1)
    kept = set()
    for text in found:
        at = block.find(text)
        while at >= 0:
            index = bisect_right(starts, at) - 1
            kept.add(index)
            # Go on in the next line: this one is kept already.
            at = block.find(text, starts[index + 1]) if index + 1 < len(starts) else -1
    return [lines[index] for index in sorted(kept)], len(lines) - len(kept)
