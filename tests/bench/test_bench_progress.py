"""How far a measurement is, in words: the time left counts the starts, and the lines fit a terminal."""

from typing import Any

import msgspec
import pytest

from vigil.bench.folder import Arm, Meta
from vigil.bench.origin import not_in_force, origin
from vigil.bench.report import report
from vigil.bench.row import Cause, Row
from vigil.bench.settings import Point, Settings
from vigil.bench.sweep import Progress
from vigil.cli.progress import drawn_lines, line_of

ONE, TWO = Point(value=1), Point(value=2)


def row(point: Point, lasted_s: float, cause: Cause | None = None) -> Row:
    return Row(arm="off", point=point, round=0, began=0.0, lasted_s=lasted_s, cause=cause)


def progress(rounds: int = 2) -> Progress:
    return Progress([ONE, TWO] * rounds, Settings(seconds=10.0))


def test_progress_says_that_the_time_of_starts_is_not_known_before_one_was_seen() -> None:
    seen = progress()
    seen.doing, seen.starts = "off  starting  round 1 of 2", 4

    assert line_of(seen) == "[0/4]  off  starting  round 1 of 2  about 72 s and 4 starts left"


def test_progress_counts_loads_and_starts_as_they_took_before() -> None:
    seen = progress()
    seen.finish(row(ONE, 10.0))
    seen.finish(row(TWO, 30.0))
    seen.starts = 2
    seen.started(40.0)

    assert (seen.done, seen.total, seen.left_s) == (2, 4, 10 + 30 + 2 * 40)


def test_progress_of_a_lost_arm_waits_for_none_of_its_loads() -> None:
    seen = progress()
    seen.finish(row(ONE, 0.0, Cause(verdict="crashed")))
    seen.drop([ONE, TWO])

    assert (seen.done, seen.total, seen.waiting) == (1, 2, [TWO])


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_progress_lines_fit_the_terminal(width: int) -> None:
    seen = progress()
    seen.doing, seen.detail, seen.starts = "an-arm-with-a-long-name  starting  round 1 of 2", "capturing graphs", 2

    assert max(map(len, drawn_lines(seen, width))) < width


def told(machine: dict[str, Any], **server: Any) -> Any:
    meta = Meta(title="t", arms=(Arm(name="off"),), points=(ONE,), settings=Settings(repeats=3), machine=machine)
    return report(meta, [row(ONE, 1.0)], {"off": {"target": {"engine": "sglang", "model": "/models/big"}, **server}})


def test_origin_names_engine_model_hardware_and_how() -> None:
    gpus = [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]
    ran_on = {"machine": {"cpus": 16, "driver": "580.1"}, "gpus": gpus, "packages": {"sglang": "0.5.17"}}
    found = told({"vigil": "0.1.0", "date": "2026-11-30 19:00:00 +0000", "cpus": 2}, ran_on=ran_on)

    assert origin(found) == (
        "SGLang 0.5.17; big; 2 x NVIDIA H200 (driver 580.1); 512 tokens in, 128 out, 3 rounds, seed 1, vigil 0.1.0, 2026-11-30"
    )


def test_origin_of_old_results_says_what_is_known() -> None:
    assert origin(told({"cpus": 2})) == "SGLang; big; 2 CPUs; 512 tokens in, 128 out, 3 rounds, seed 1, vigil ?"


def test_a_flag_that_is_not_in_force_is_told() -> None:
    flags = [
        {"flag": "--max-running-requests", "asked": "256", "in_force": "48", "state": "changed"},
        {"flag": "--port", "asked": "1", "in_force": "1", "state": "same"},
    ]

    assert not_in_force(told({}, ran_on={"flags": flags})) == [
        "off: --max-running-requests was asked for as 256, in force is 48"
    ]


def test_origin_says_how_long_prompts_and_answers_were_where_a_file_and_the_model_decided() -> None:
    meta = Meta(
        title="t", arms=(Arm(name="off"),), points=(ONE,), settings=Settings(ignore_eos=False, output_tokens=256)
    )
    seen = [
        msgspec.structs.replace(row(ONE, 1.0), ended=3, input_tokens=each, output_tokens=140.0) for each in (50.0, 62.0)
    ]

    assert origin(report(meta, seen, {})).startswith(
        "prompts of 56 tokens on average, answers to their natural end or 256 tokens, 140 on average, 3 rounds"
    )
