"""What our own patterns cost on hostile lines of 1,000 characters, the dearest ten.

    python bench/patterns_cost.py

They run while a server is watched, on up to 600 lines for each text; a pattern that takes the square of a line shows at the top.
"""

import re
import sys
import timeit

from vigil.diagnosis.rules import Needle, known_rule_set
from vigil.diagnosis.text import LONGEST_LINE

FILLERS = (
    *("x", "a ", "(", "' ", "--a ", "1 ", "1", "[rank0]: ", "/a/b.c ", "Error: ", "size mismatch for ", " not ", "a.b-c", ": "),
    *("'a', ", "_", "a=1,", "0x1f ", "Cannot be ", "GPU ", "No such file or directory: '"),
)  # fmt: skip
SHOWN = 10


def cost_us(pattern: re.Pattern[str], line: str) -> float:
    """Return the microseconds of one search, the least of three."""
    return min(timeit.repeat(lambda: pattern.search(line), number=1, repeat=3)) * 1e6


def dearest(needle: Needle) -> tuple[float, str, str]:
    """Return what the dearest search of a needle costs, its rule and the filler of that line."""
    patterns = [one for one in (needle.pattern, needle.above, needle.frame) if one is not None]
    lines = [
        ((start + filler * LONGEST_LINE)[:LONGEST_LINE], filler)
        for filler in FILLERS
        for start in ("", needle.when.text)
    ]
    costs = [(cost_us(pattern, line), needle.rule.code, filler) for pattern in patterns for line, filler in lines]
    return max(costs, default=(0.0, needle.rule.code, ""))


def main() -> int:
    """Print the table."""
    found = sorted(map(dearest, known_rule_set().needles), reverse=True)
    print(f"{'us a line':>10}  rule      filled with")
    for cost, code, filler in found[:SHOWN]:
        print(f"{cost:>10.0f}  {code:8}  {filler!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
