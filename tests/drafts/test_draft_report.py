"""The course of a training, told and drawn from its record: killed ones, old ones, several, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import vigil_draft_smollm2
from vigil.errors import UsageError
from vigil_draft.cli.app import app
from vigil_draft.learn.record import read

KEPT = Path(vigil_draft_smollm2.__file__).parent / "made" / "record.jsonl"


def line(step: int, /, **more: Any) -> str:
    told = {"step": step, "tokens": 512 * step, "loss": 10 / step, "accuracy": [0.5, 0.25], "acceptance_length": 1.625}
    return json.dumps({**told, **more})


def folder(home: Path, name: str, *lines: str) -> Path:
    (home / name).mkdir()
    (home / name / "record.jsonl").write_text("\n".join(lines))
    return home / name


def test_steps_that_were_done_a_second_time_count_once(tmp_path: Path) -> None:
    """Killed after step 30; the checkpoint was of step 15."""
    found = read(folder(tmp_path, "d", line(10), line(20), line(30), line(19, loss=0.5), line(29), line(39)))
    assert [one.step for one in found.moments] == [10, 19, 29, 39]
    assert found.moments[1].loss == 0.5


def test_an_old_record_says_its_tokens_by_rate_and_time() -> None:
    last = read(KEPT).moments[-1]
    assert last.step == 15387
    assert last.tokens == pytest.approx(15387 * 8192, rel=0.01)


def test_a_line_that_a_kill_cut_is_left_out(tmp_path: Path) -> None:
    assert len(read(folder(tmp_path, "d", line(10), line(20), line(30)[:40])).moments) == 2


@pytest.mark.parametrize("bad", ["{", "[]", line(20, loss=float("nan")), line(20, accuracy=[]), line(20, step="x")])
def test_a_record_that_is_none_is_one_line(tmp_path: Path, bad: str) -> None:
    with pytest.raises(UsageError, match=r"line 2 is no line of a training's record"):
        read(folder(tmp_path, "d", line(10), bad, line(30)))
    with pytest.raises(UsageError, match="name a folder that vigil draft train wrote"):
        read(tmp_path)


def test_one_training_is_told_and_drawn(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(KEPT), "--pictures", str(tmp_path / "pictures")])
    assert done.exit_code == 0, done.output
    assert "15,387 steps, 126 million tokens, loss 4.248" in done.output
    for title in ("loss", "estimated acceptance length", "accuracy of each guess", "guess 4", "million tokens"):
        assert title in done.output
    svg = (tmp_path / "pictures" / "training.svg").read_text()
    assert svg.startswith("<?xml")
    assert (tmp_path / "pictures" / "training.png").read_bytes().startswith(b"\x89PNG")


def test_several_trainings_stand_in_one_picture_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    some = [folder(tmp_path / one, "draft", line(10), line(20), line(40, accuracy=[0.5, 0.25, 0.1])) for one in "ab"]
    done = CliRunner().invoke(app, ["report", *map(str, some), "--pictures", str(tmp_path / "p")])
    assert done.exit_code == 0, done.output
    assert "draft (1)" in done.output
    assert "draft (2)" in done.output
    assert "accuracy of guess 1" in done.output
    told = json.loads(CliRunner().invoke(app, ["report", *map(str, some), "--json"]).output)
    assert [one["name"] for one in told["records"]] == ["draft (1)", "draft (2)"]
    assert told["records"][0]["moments"][2]["tokens"] == 512 * 40
