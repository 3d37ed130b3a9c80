"""Every case of the lists goes through the checks: the broken ones are refused with the right correction, no good one is.

Folders are made and seen by the scout; flags are held against the table of the case's release; the host is a plain one, with what
the case says over it.
"""

from pathlib import Path

import pytest

from preflight.examined import is_corrected, report
from preflight.lists import Case, cases

CASES = cases()
BROKEN = [case for case in CASES if case.code]
GOOD = [case for case in CASES if not case.code]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_command_is_refused_with_its_correction(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    found = report(case, tmp_path)

    assert case.code in {one.code for one in found.fatal}, [
        (one.code, one.severity, one.text) for one in found.findings
    ]
    assert is_corrected(case, found, tmp_path), [(one.text, one.edits) for one in found.findings]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_a_good_command_is_not_refused(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    found = report(case, tmp_path)

    assert not found.fatal, [(one.code, one.text) for one in found.fatal]


def test_every_case_of_the_lists_says_where_it_is_from() -> None:
    assert all(case.source and case.name for case in CASES)
    assert len({case.name for case in CASES}) == len(CASES)
