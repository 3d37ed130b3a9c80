"""What earlier starts of a plan lead us to expect; a history that cannot be kept is no reason to stop."""

import os
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from vigil.engine_table import Phase
from vigil.plan import Plan
from vigil.store import History, private_folder, state_folder
from vigil.store.history import KEPT
from vigil.verdict import PhaseSpan, Verdict, Word

PLAN = Plan(command=("sglang", "serve"))


def ready(after_s: float) -> Verdict:
    spans = (PhaseSpan(name=Phase.LOADING_WEIGHTS, from_s=0.0, to_s=after_s),)
    return Verdict(word=Word.READY, exit_code=0, since_s=after_s, phases=spans)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return History()


def test_history_expects_nothing_of_a_new_plan(history: History) -> None:
    expected = history.expected(PLAN)

    assert (expected.ready_after_s, expected.slowest_quiet_s) == (None, {})


def test_history_expects_the_median_and_the_longest_silence(history: History) -> None:
    for after_s, quiet_s in ((10.0, 3.0), (30.0, 9.0), (20.0, 4.0)):
        assert history.add(PLAN, ready(after_s), {"loading_weights": quiet_s}) is None
    expected = history.expected(PLAN)

    assert expected.ready_after_s == 20.0
    assert expected.slowest_quiet_s == {"loading_weights": 9.0}


def test_history_learns_only_from_starts_that_became_ready(history: History) -> None:
    history.add(PLAN, Verdict(word=Word.STALLED, exit_code=6, since_s=900.0), {"loading_weights": 900.0})

    assert history.expected(PLAN).slowest_quiet_s == {}


def test_history_keeps_plans_apart(history: History) -> None:
    history.add(PLAN, ready(10.0), {})

    assert history.expected(replace(PLAN, on="gpu7")).ready_after_s is None
    assert history.expected(replace(PLAN, command=("vllm", "serve"))).ready_after_s is None


def test_history_finds_the_plan_behind_a_name(history: History) -> None:
    history.add(PLAN, ready(10.0), {})
    expected = history.expected(Plan(name="s1"), PLAN.id)

    assert expected.ready_after_s == 10.0
    assert (expected.left_s(4.0), expected.left_s(60.0)) == (6.0, 0.0)


def test_history_forgets_what_is_long_ago(history: History) -> None:
    history.add(PLAN, ready(1000.0), {"loading_weights": 500.0})
    for _ in range(KEPT):
        history.add(PLAN, ready(10.0), {"loading_weights": 2.0})

    assert history.expected(PLAN).slowest_quiet_s == {"loading_weights": 2.0}


def test_history_that_cannot_be_written_is_said_once_and_forgiven(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    history = History(blocked / "history.db")

    assert "cannot be written" in (history.add(PLAN, ready(1.0), {}) or "")
    assert history.expected(PLAN).ready_after_s is None


@pytest.mark.parametrize("content", [b"", b"this is no database, but it is long enough to look at" * 100])
def test_history_that_is_broken_is_forgiven(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(content)
    history = History(path)
    history.add(PLAN, ready(1.0), {})

    assert history.expected(PLAN).ready_after_s in {None, 1.0}


def test_history_of_another_shape_is_forgiven(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    connection = sqlite3.connect(path)
    connection.execute("create table starts (plan text)")
    connection.commit()
    connection.close()

    assert History(path).expected(PLAN).ready_after_s is None


def test_history_with_a_broken_row_is_forgiven(history: History) -> None:
    history.add(PLAN, ready(10.0), {"loading_weights": 2.0})
    connection = sqlite3.connect(state_folder() / "history.db")
    connection.execute("update starts set quiet_s = 'no json'")
    connection.commit()
    connection.close()

    assert history.expected(PLAN).slowest_quiet_s == {}


def test_state_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert state_folder() == tmp_path / "x" / "vigil"
    monkeypatch.setenv("XDG_STATE_HOME", "")
    assert state_folder() == Path.home() / ".local" / "state" / "vigil"


def test_private_folder_is_for_its_owner_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "deep" / "state"))
    before = os.umask(0)
    try:
        folder = private_folder("traces")
    finally:
        os.umask(before)

    assert folder == state_folder() / "traces"
    assert {one.stat().st_mode & 0o777 for one in (folder, folder.parent)} == {0o700}
