"""Every case of the lists goes through the checks: the broken ones are refused with the right correction, no good one is.

Folders are made and seen by the scout; flags are held against the table of the case's release; the host is a plain one, with what
the case says over it.
"""

import shlex
from pathlib import Path

import msgspec
import pytest

from preflight.hosts import host_of
from preflight.lists import Case, cases
from vigil.plan import Plan
from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Report
from vigil.preflight.sight import Sight
from vigil.scout import desk
from vigil.supervise.ahead import command_of, question_of, sight_of

CASES = cases()
BROKEN = [case for case in CASES if case.code]
GOOD = [case for case in CASES if not case.code]


def report(case: Case, here: Path) -> Report:
    """Put one case through all checks."""
    case.make(here)
    plan = Plan(command=case.words(here), env=case.env, cwd=str(here))
    command = msgspec.structs.replace(command_of(plan), version=case.version)
    return examine(command, sight(case, plan, command))


def sight(case: Case, plan: Plan, command: Command) -> Sight:
    """Return what the scout sees of the case's folders, on a plain host; a case without any speaks of no folder."""
    if not (case.files or case.tensors or case.look):
        return Sight(host=host_of(case.host, case.version))
    asked = {**question_of(plan, command, deep=False), "parts": ["models"]}
    seen = desk.answer(desk.question_of(asked), ["models"])
    return msgspec.structs.replace(sight_of(seen), host=host_of(case.host, case.version))


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_broken_command_is_refused_with_its_correction(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    found = report(case, tmp_path)

    assert case.code in {one.code for one in found.fatal}, [
        (one.code, one.severity, one.text) for one in found.findings
    ]
    corrected = case.corrected.replace("{here}", str(tmp_path))
    if corrected:
        assert found.corrected is not None, [(one.text, one.advice) for one in found.findings]
        assert corrected in " ".join(found.corrected) or corrected in shlex.join(found.corrected)


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_a_good_command_is_not_refused(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    found = report(case, tmp_path)

    assert not found.fatal, [(one.code, one.text) for one in found.fatal]


def test_every_case_of_the_lists_says_where_it_is_from() -> None:
    assert all(case.source and case.name for case in CASES)
    assert len({case.name for case in CASES}) == len(CASES)
