"""The journal of answers: whatever is cut off its end, the whole lines before are there, and nothing else."""

from pathlib import Path

import pytest

from vigil.errors import UsageError
from vigil_draft.data.journal import NAME, Document, Entry, Journal

ENTRIES = [Entry(n=at, documents=[Document(ids=[1, 2, at], spans=[(1, 3)])]) for at in (2, 0, 1)]


def fill(folder: Path) -> bytes:
    journal = Journal.open(folder)
    for one in ENTRIES:
        journal.add(one)
    journal.sync()
    journal.close()
    return (folder / NAME).read_bytes()


def test_a_journal_cut_anywhere_holds_the_whole_lines_before(tmp_path: Path) -> None:
    whole = fill(tmp_path)
    for cut in range(len(whole) + 1):
        (tmp_path / NAME).write_bytes(whole[:cut])
        journal = Journal.open(tmp_path)
        lines = whole[:cut].count(b"\n")
        assert list(journal.entries()) == sorted(ENTRIES[:lines], key=lambda one: one.n)
        for one in ENTRIES[lines:]:
            journal.add(one)
        journal.close()
        assert (tmp_path / NAME).read_bytes() == whole


def test_a_journal_damaged_in_its_middle_is_refused_by_its_line(tmp_path: Path) -> None:
    first, second, third = fill(tmp_path).splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(first + second[:5] + b"\n" + third)
    with pytest.raises(UsageError, match="line 2: damaged"):
        Journal.open(tmp_path)
