"""What is drawn of results in a terminal: every value at its place, within 80 columns, readable without colours and Unicode."""

import pytest

from vigil.bench.chart import ASCII, UNICODE, Row, beside, compact, draw, legend, step_of
from vigil.bench.intervals import Interval
from vigil.bench.panels import Panel, Series

LOADS = (1.0, 8.0, 32.0, 64.0, 128.0, 256.0)


def series(arm: str, index: int, *values: float, wide: float = 0.0) -> Series:
    points = tuple(
        (load, Interval(value=value, low=value - wide, high=value + wide) if wide else Interval(value=value))
        for load, value in zip(LOADS, values, strict=False)
    )
    return Series(arm=arm, index=index, points=points)


def panel(*lines: Series) -> Panel:
    return Panel(kind="concurrency", title="tokens a second", below="concurrent requests", series=lines)


def text(rows: list[Row]) -> list[str]:
    return ["".join(char for char, _ in row).rstrip() for row in rows]


def test_chart_of_one_arm_in_ascii() -> None:
    drawn = text(draw(panel(series("off", 0, 100, 200, 300, 400, 400, 400)), 40, 9, ASCII))

    assert drawn == [
        "               tokens a second",
        "400 +                        o...o...o",
        "    |                      ..",
        "300 +                   ..o",
        "    |                ...",
        "200 +            .o..",
        "    |        ....",
        "    |    ....",
        "100 +  o.",
        "    |",
        "  0 +--+----------+-------+--+---+---+--",
        "       1          8       32 64 128 256",
        "             concurrent requests",
    ]


def test_chart_is_as_wide_as_asked_and_holds_all_arms_and_the_heaviest_load() -> None:
    lines = (
        series("off", 0, 100, 700, 2000, 3000, 5000, 6000, wide=300),
        series("eagle3", 1, 200, 900, 1900, 2500, 2400, 2000),
    )
    for style in (UNICODE, ASCII):
        for width in range(30, 81):
            rows = draw(panel(*lines), width, 11, style)
            assert max(map(len, text(rows))) <= width
            assert "256" in text(rows)[-2]
            cells = [cell for row in rows for cell in row]
            assert cells.count((style.marks[0], 0)) == len(LOADS) == cells.count((style.marks[1], 1))


def test_chart_puts_marks_of_one_value_side_by_side() -> None:
    drawn = "\n".join(text(draw(panel(series("a", 0, 5), series("b", 1, 5), series("c", 2, 5)), 40, 9, UNICODE)))

    assert {"●", "■", "▲"} <= set(drawn)


def test_chart_in_ascii_holds_nothing_else() -> None:
    rows = draw(panel(series("a", 0, 1, 2, 3, wide=1)), 60, 9, ASCII)

    assert "\n".join(text([*rows, legend(panel(series("a", 0, 1)).series, ASCII, "bars: 95 %")])).isascii()


def test_chart_keeps_an_interval_of_two_rounds_from_hiding_the_values() -> None:
    wild = panel(series("a", 0, 100, 110, 120, wide=5000))

    assert wild.top == pytest.approx(192)
    assert "●" in "\n".join(text(draw(wild, 60, 9, UNICODE)))


@pytest.mark.parametrize(
    ("top", "step"),
    [(11427, 2500), (400, 100), (0.12, 0.025), (1, 0.2), (5, 1), (5.1, 2), (1e-6, 2e-7), (999999, 200000)],
)
def test_chart_axis_has_five_steps_at_most(top: float, step: float) -> None:
    assert step_of(top) == pytest.approx(step)


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.05, "0.05"), (150, "150"), (2500, "2.5k"), (12000, "12k")])
def test_chart_numbers_are_short(value: float, shown: str) -> None:
    assert compact(value) == shown


def test_charts_side_by_side_line_up() -> None:
    one = draw(panel(series("a", 0, 1, 2, 3)), 38, 9, UNICODE)
    rows = beside([one, one], 38, 2)

    assert {len(row) for row in rows[1:-2]} <= {78, 77, 76}
    assert text(rows)[2].index("│", 10) - text(rows)[2].index("│") == 40
