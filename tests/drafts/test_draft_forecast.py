"""What a training will take: time with states that are kept or not, and a disk that is too small."""

import pytest

from vigil.errors import UsageError
from vigil_draft.learn.forecast import Pace, disk_of, pace_of, refuse_small_disk, told_after
from vigil_draft.learn.order import Plan

ONE_ROW = Plan(target="t", data="d", out="o", epochs=3, length=64, tokens_per_step=64)
TEN = 10


def test_the_first_step_warms_up_and_does_not_count() -> None:
    assert pace_of([9.0, 1.0, 2.0, 3.0], 0.5, 7).step_s == 2.0
    assert pace_of([9.0, 1.0, 1.0], 5.0, 7).states_s == 1.0


def test_states_that_are_kept_are_not_paid_for_again() -> None:
    kept = Pace(step_s=1.0, states_s=0.4, kept_rows=TEN)
    assert kept.left_s(ONE_ROW, TEN, 0, TEN) == pytest.approx(10 + 6 + 6)
    assert kept.left_s(ONE_ROW, TEN, 15, TEN) == pytest.approx(
        5 + 6
    )  # gone on in the second epoch, with nothing kept yet
    half = Pace(step_s=1.0, states_s=0.4, kept_rows=5)
    assert half.left_s(ONE_ROW, TEN, 0, TEN) == pytest.approx(10 + 8 + 8)
    none = Pace(step_s=1.0, states_s=0.4, kept_rows=0)
    assert none.left_s(ONE_ROW, TEN, 0, TEN) == pytest.approx(30)


def test_of_several_processes_each_meets_its_share_of_the_rows_in_an_epoch() -> None:
    two = Plan(target="t", data="d", out="o", epochs=2, length=64, tokens_per_step=128, nproc=2)
    assert Pace(step_s=1.0, states_s=0.4, kept_rows=TEN).left_s(two, TEN, 0, 5) == pytest.approx(5 + 5 * 0.8)


def test_the_end_is_by_the_minutes_where_these_come_first() -> None:
    pace = Pace(step_s=1.0, states_s=0.4, kept_rows=TEN)
    limited = told_after(pace, 500.0, 30.0, 0.0, (0, 0))
    assert "ends in about 30.0 s" in limited
    assert "(by --minutes; all epochs would take more than 8 min 20 s)" in limited
    assert "ends in about 20.0 s, at" in told_after(pace, 20.0, 30.0, 0.0, (0, 0))
    assert "ends in about 20.0 s, at" in told_after(pace, 20.0, None, 0.0, (0, 0))


def test_a_disk_must_hold_a_checkpoint_that_replaces_another() -> None:
    disk = disk_of(1_000_000, 1000, 5000)
    assert disk.checkpoint == 12_008_000
    refuse_small_disk("out", disk, 0, disk.needed(0))
    with pytest.raises(UsageError, match=r"out: .* are needed .* and .* are free"):
        refuse_small_disk("out", disk, 0, disk.needed(0) - 1)
    refuse_small_disk("out", disk, disk.checkpoint + disk.draft, disk.needed(0) - disk.checkpoint - disk.draft)
