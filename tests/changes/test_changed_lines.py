"""A difference as a line for people: it fits, moves no terminal, and says what it is."""

import pytest

from vigil.changes import Change
from vigil.cli.changed import line_of
from vigil.screen import ago, size

LINES = {
    "added": (Change(what="flag --tp", after="8"), "    flag --tp: added: 8"),
    "switched on": (Change(what="flag --enforce-eager", after="given"), "    flag --enforce-eager: added"),
    "removed": (Change(what="package x", before="1.0"), "    package x: removed (was 1.0)"),
    "switched off": (Change(what="flag -v", before="given"), "    flag -v: removed"),
    "explaining": (Change(what="a", before="1", after="2", explains=True), "  > a: 1 -> 2"),
    "a secret": (
        Change(what="variable K", before="***", after="changed"),
        "    variable K: changed (a secret: not shown)",
    ),
    "hostile": (Change(what="a\x1b[2J", after="x\ny"), "    a: added: x y"),
    "long": (Change(what="p", before="b" * 99, after="/a/" + "c" * 99 + "/d"), None),
}


@pytest.mark.parametrize("kind", LINES)
def test_difference_is_told_in_a_line(kind: str) -> None:
    change, wanted = LINES[kind]
    lines = line_of(change, 100)
    assert wanted is None or lines == [wanted]
    assert all(len(line) <= 100 and line.isprintable() for line in lines)
    assert len(lines) <= 2


def test_long_values_keep_both_ends() -> None:
    told = " ".join(line_of(LINES["long"][0], 200))
    assert "/a/ccc" in told
    assert told.endswith("ccc/d")


def test_times_and_sizes_are_for_people() -> None:
    assert [ago(one) for one in (0, 59, 600, 7300, 200000)] == [
        "0 s ago",
        "59 s ago",
        "10 min ago",
        "2 h ago",
        "2 days ago",
    ]
    assert [size(one) for one in (0, 135, 5 << 30, None)] == ["0 bytes", "135 bytes", "5.0 GiB", "?"]
