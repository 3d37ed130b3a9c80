"""What our own patterns cost on hostile lines: they run while a server is watched, on up to 600 lines for each text."""

import re
import timeit

import pytest

from vigil.diagnosis.rules import Needle, known_rule_set
from vigil.diagnosis.text import LONGEST_LINE

FILLERS = (
    *(
        "x",
        "a ",
        "(",
        "' ",
        "--a ",
        "1 ",
        "1",
        "[rank0]: ",
        "/a/b.c ",
        "Error: ",
        "size mismatch for ",
        " not ",
        "a.b-c",
        ": ",
    ),
    *("'a', ", "_", "a=1,", "0x1f ", "Cannot be ", "GPU ", "No such file or directory: '"),
)
YARDSTICK = re.compile(r"\w+:")
"""Takes a word from each of its letters to its end: a square of the line's length."""


def cost_s(pattern: re.Pattern[str], line: str) -> float:
    return min(timeit.repeat(lambda: pattern.search(line), number=1, repeat=3))


def patterns(needle: Needle) -> list[re.Pattern[str]]:
    return [one for one in (needle.pattern, needle.above, needle.frame) if one is not None]


@pytest.mark.parametrize("code", sorted({needle.rule.code for needle in known_rule_set().needles}))
def test_no_pattern_costs_the_square_of_a_line(code: str) -> None:
    most_s = cost_s(YARDSTICK, "x" * LONGEST_LINE) / 2
    for needle in (one for one in known_rule_set().needles if one.rule.code == code):
        for filler in FILLERS:
            for line in (needle.when.text + filler * LONGEST_LINE, filler * LONGEST_LINE):
                for pattern in patterns(needle):
                    assert cost_s(pattern, line[:LONGEST_LINE]) < most_s, (pattern.pattern, filler)
