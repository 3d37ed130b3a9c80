"""What became of `--speculate`: every process that decides says so, or the server is degraded with the reason."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vigil.fact_parts import AttestedProcess, Switching
from vigil.facts import Attested
from vigil.observer.switching import fact_of, read_switching
from vigil.verdict import read_expectation
from vigil.verdict.expected import judge_expectations

RANKS = tuple(AttestedProcess(pid=100 + rank, title=f"sglang::scheduler_TP{rank}") for rank in range(2))
ASKED = [read_expectation("speculate=abc")]


def judged(*told: dict[str, Any], error: str = "") -> tuple[bool | None, str]:
    switching = tuple(
        Switching(**{"pid": 100, "deciding": True, "schedule": "abc", "mode": "auto", "k": 3, **one}) for one in told
    )
    seen = Attested(at_s=1.0, processes=RANKS, switching=switching, error=error)
    (found,) = judge_expectations(ASKED, seen, None)
    return found.met, found.found


def test_every_rank_that_decides_as_asked_meets_it() -> None:
    assert judged({}, {"pid": 101}) == (True, "decided in scheduler_TP0..1, mode auto, k 3 now")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((), "vigil-engine was not loaded"),
        (({}, {"pid": 101, "schedule": "def"}), "scheduler_TP1 decides by def"),
        (({"deciding": False, "schedule": ""},), "scheduler_TP0 decides by nothing"),
        (
            ({}, {"pid": 101, "refused": ("x is not there",)}),
            "in scheduler_TP1 left the engine as it was: x is not there",
        ),
        (({"errors": ("KeyError: 3",)},), "in scheduler_TP0 gave up: KeyError: 3"),
        (({"pid": 7, "refused": ("a", "b", "c", "d")},), "in pid 7 left the engine as it was: a; b; c and 1 more"),
    ],
)
def test_whatever_else_is_told_does_not(told: tuple[dict[str, Any], ...], said: str) -> None:
    met, found = judged(*told)
    assert (met, said in found) == (False, True), found


def test_processes_that_could_not_be_asked_are_not_known() -> None:
    assert judged(error="no such folder")[0] is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*Switching.__struct_fields__]), VALUES))
def test_account_that_says_anything_is_a_fact_of_the_right_form(account: dict[str, Any]) -> None:
    fact = fact_of({**account, "pid": 3})
    assert msgspec.convert(json.loads(json.dumps(fact)), Switching).pid == 3


def test_accounts_are_those_of_living_processes_in_sound_files(tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / f"engine-{os.getpid()}.json").write_text('{"deciding": true, "k": 3, "pid": 1}')
    (folder / "engine-999999999.json").write_text('{"deciding": true}')
    (folder / "engine-1.json").write_text("{")
    (folder / "engine-x.json").write_text("{}")
    (folder / f"engine-{os.getppid()}.json").write_text("[" * 100_000)
    (only,) = read_switching(str(tmp_path))
    assert (only["pid"], only["deciding"], only["k"]) == (os.getpid(), True, 3)
    assert read_switching(str(tmp_path / "nowhere")) == read_switching(None) == []
