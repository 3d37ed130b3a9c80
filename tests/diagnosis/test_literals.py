"""Many texts looked for at once: the same lines as one look after another finds."""

from hypothesis import given
from hypothesis import strategies as st

from vigil.diagnosis.literals import Literals

TEXTS = ("error", "err", "rror", "é", "a", "aa", "x y")
LINES = st.lists(
    st.sampled_from(["", "error", "aaaa", "no", "é error", "x y", "\ud800 a", "a" * 9000, "error " * 3000]), max_size=12
)


@given(LINES)
def test_lines_that_hold_a_text_are_found_in_order(lines: list[str]) -> None:
    assert Literals(TEXTS).find(lines) == {
        text: [number for number, line in enumerate(lines) if text in line] for text in TEXTS
    }
