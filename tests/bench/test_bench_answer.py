"""Words for a comparison, from rows with known throughputs."""

import pytest

from vigil.bench.answer import comparisons
from vigil.bench.figures import figures
from vigil.bench.row import Cause, Row, Spread
from vigil.bench.settings import Point


def rows(arm: str, speeds: dict[int, float], rounds: int = 3, noise: float = 0.01) -> list[Row]:
    return [
        Row(arm=arm, point=Point(value=load), round=number, began=0.0, lasted_s=1.0, output_per_s=speed,
            blocks=tuple(speed * (1 + noise * (number - 1) * (1 if arm == "off" else -1)) for _ in range(10)))
        for load, speed in speeds.items()
        for number in range(rounds)
    ]  # fmt: skip


def said(ours: dict[int, float], theirs: dict[int, float], rounds: int = 3, noise: float = 0.01) -> str:
    return comparisons(["off", "eagle3"], [*rows("off", theirs, rounds, noise), *rows("eagle3", ours, rounds, noise)])[
        0
    ].text


def test_answer_names_the_loads_between_which_it_turns() -> None:
    off = {1: 100, 8: 500, 24: 900, 32: 1000, 40: 1100, 128: 2000}
    text = said({1: 210, 8: 900, 24: 1100, 32: 1010, 40: 900, 128: 1240}, off)

    assert text == (
        "eagle3 against off: faster up to 24 concurrent requests (2.1x at 1), slower from 40 (0.62x at 128);"
        " between: inconclusive; they cross at about 32"
    )


def test_answer_is_inconclusive_where_the_noise_hides_it() -> None:
    assert (
        said({1: 104, 8: 520}, {1: 100, 8: 500}, noise=0.1)
        == "eagle3 against off: inconclusive at 1 to 8 concurrent requests"
    )


def test_answer_can_be_one_thing_at_all_loads() -> None:
    assert (
        said({1: 150, 8: 700}, {1: 100, 8: 500})
        == "eagle3 against off: faster at 1 to 8 concurrent requests (1.5x at 1)"
    )


def test_answer_says_that_one_round_shows_no_drift() -> None:
    assert "one round only" in said({1: 150}, {1: 100}, rounds=1)


def test_answer_calls_what_is_surely_within_two_percent_even() -> None:
    assert "as fast (within 2 %)" in said({1: 100.2}, {1: 100.0}, noise=0.0005)


def test_answer_says_which_arm_has_no_measurement() -> None:
    lost = Row(
        arm="eagle3",
        point=Point(value=1),
        round=0,
        began=0.0,
        lasted_s=0.0,
        cause=Cause(verdict="crashed", code="MEM001"),
    )
    found = comparisons(["off", "eagle3"], [*rows("off", {1: 100}), lost])[0]

    assert found.text == "eagle3 against off: eagle3 has no measurement at 1 concurrent requests"
    assert figures([lost])[0].cause == lost.cause


def test_crossing_lies_between_the_loads_where_the_ratio_turns() -> None:
    found = comparisons(["off", "on"], [*rows("off", {4: 100, 16: 100}), *rows("on", {4: 200, 16: 50})])[0]

    assert found.crossing == pytest.approx(8.0, rel=0.05)


def test_at_a_rate_the_time_of_an_answer_decides_and_not_the_throughput() -> None:
    def at_rate(arm: str, e2e_s: float) -> list[Row]:
        spread = Spread(count=9, mean=e2e_s, p50=e2e_s, p90=e2e_s, p99=e2e_s, blocks=(e2e_s,))
        common = {"began": 0.0, "lasted_s": 1.0, "output_per_s": 100.0, "blocks": (100.0,), "e2e_s": spread}
        return [Row(arm=arm, point=Point(kind="rate", value=2), round=number, **common) for number in range(3)]

    found = comparisons(["off", "on"], [*at_rate("off", 1.0), *at_rate("on", 0.5)])[0]

    assert found.text == "on against off: faster at 2 requests a second (2x at 2)"


def test_answer_shows_small_differences_with_enough_digits_and_names_a_single_load() -> None:
    text = said({1: 103, 8: 500}, {1: 100, 8: 500}, noise=0.001)

    assert (
        text
        == "eagle3 against off: faster at 1 concurrent requests (1.03x at 1), as fast (within 2 %) from 8 (1.00x at 8)"
    )
