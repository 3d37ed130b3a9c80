"""A load counts from when the server is where it is to be measured: a switch that comes late is no part of what is measured."""

from types import SimpleNamespace
from typing import Any

from vigil.bench.drive import Drive
from vigil.bench.settings import Point, Settings

BEGAN_S = 1000.0
SLOW, FAST = 80, 120
"""Tenths of a second before the switch, and after it."""


def load() -> Any:
    """A load that has been on for twenty seconds: slow and steady for eight of them, then fast and steady."""
    replies = [SimpleNamespace(failure=None, ended_s=BEGAN_S + n * 0.5) for n in range(40)]
    return SimpleNamespace(bins=[10] * SLOW + [40] * FAST, began_s=BEGAN_S, known_s=BEGAN_S + 20.0, replies=replies)


def drive(*, waits: bool) -> Drive:
    return Drive(load(), Point(value=2.0), Settings(seconds=5.0), waits=waits)


def test_load_whose_server_has_not_settled_is_not_steady_however_even_it_is() -> None:
    seen = drive(waits=True)

    assert not seen._enough()
    assert (seen.steady, seen.from_s) == (False, 0.0)


def test_what_came_before_it_settled_does_not_count() -> None:
    seen = drive(waits=True)
    seen.settled_s = BEGAN_S + SLOW / 10

    assert seen._enough()
    assert seen.steady
    assert seen.from_s == BEGAN_S + SLOW / 10


def test_time_enough_is_counted_from_then_on() -> None:
    seen = drive(waits=True)
    seen.settled_s = BEGAN_S + 16.0

    assert not seen._enough()  # four seconds of the five


def test_load_that_waits_for_nothing_is_judged_as_ever() -> None:
    seen = drive(waits=False)

    assert seen.settled_s == 0.0
    assert seen._enough()
