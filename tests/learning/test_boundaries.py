"""A draft that is fed from other layers than the usual ones: each format counts them in its own way, and all mean the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from vigil.errors import UsageError
from vigil_draft.cli.app import app
from vigil_draft.cli.boundaries import boundaries_of
from vigil_draft.evaluate.report import evaluate
from vigil_draft.inspect.inspection import inspect
from vigil_draft.learn.launch import launch
from vigil_draft.learn.order import Plan
from vigil_draft.states.extract import Asked, extract

OTHER = (1, 3, 5)
IDS = "eagle_aux_hidden_state_layer_ids"
RELEASES = (("sglang", "0.5.10"), ("sglang", "0.5.23"), ("vllm", "0.20"), ("vllm", "0.33"))


def asked(toy: Path, out: Path, **more: Any) -> Plan:
    given = {"target": str(toy / "target"), "data": str(toy / "data"), "out": str(out), "boundaries": OTHER}
    return Plan(
        **{
            **given,
            "epochs": 12,
            "length": 64,
            "tokens_per_step": 512,
            "lr": 2e-3,
            "ttt": 3,
            "draft_vocab": 128,
            **more,
        }
    )


def draft(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture(scope="module")
def trained(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From extracted states, so that these are of the same layers, too."""
    home = tmp_path_factory.mktemp("other")
    given = {"target": str(toy / "target"), "data": str(toy / "data"), "length": 64, "boundaries": OTHER}
    extract(Asked(**given, out=str(home / "states")))
    launch(asked(toy, home / "draft", states=str(home / "states")))
    return home / "draft"


@pytest.fixture(scope="module")
def converted(toy: Path, trained: Path) -> dict[str, Path]:
    found = {}
    for to in ("sglang", "vllm", "speculators"):
        found[to] = trained.parent / to
        done = draft("convert", trained, found[to], "--to", to, "--target", toy / "target")
        assert done.exit_code == 0, done.output
    return found


def config(path: Path) -> dict[str, Any]:
    return json.loads((path / "config.json").read_text())


def promise(toy: Path, path: Path) -> float:
    found = evaluate(path, str(toy / "target"), toy / "held-out", k=3, length=64)
    return found["acceptance_length"]["3"]["served"]["with_bonus"]


def test_the_folder_says_them_to_each_engine_in_its_own_way(toy: Path, trained: Path) -> None:
    told = config(trained)
    assert told[IDS] == [1, 3, 5]
    assert told["eagle_config"][IDS] == [0, 2, 4]
    assert json.loads((trained / "vigil.json").read_text())["boundaries"] == [1, 3, 5]
    found = inspect(str(trained), str(toy / "target"), (*RELEASES, ("vllm", "0.10")))
    assert found.conventions["inputs"].startswith("boundaries 1, 3, 5 (state after so many layers), from its list")
    assert [one.as_trained for one in found.readings] == [True] * 4 + [False]
    assert [one.code for one in found.readings[-1].findings] == ["DRAFT004"]  # it reads no list at all


def test_each_format_counts_them_in_its_own_way(toy: Path, converted: dict[str, Path]) -> None:
    assert config(converted["sglang"])["eagle_config"][IDS] == [0, 2, 4]
    assert IDS not in config(converted["sglang"])
    assert config(converted["vllm"])[IDS] == [1, 3, 5]
    assert "eagle_config" not in config(converted["vllm"])
    assert config(converted["speculators"])[IDS] == [1, 3, 5]
    for path in converted.values():
        found = inspect(str(path), str(toy / "target"), RELEASES)
        assert found.conventions["inputs"].startswith("boundaries 1, 3, 5 ")
    for to, engine in (("sglang", "sglang"), ("vllm", "vllm"), ("speculators", "vllm")):
        mine = tuple(one for one in RELEASES[1:] if one[0] == engine)  # SGLang 0.5.10 knows midlayer alone
        assert all(one.as_trained for one in inspect(str(converted[to]), str(toy / "target"), mine).readings), to
    theirs = inspect(str(converted["sglang"]), str(toy / "target"), (("vllm", "0.20"), ("vllm", "0.33"))).readings
    assert [one.code for reading in theirs for one in reading.findings] == ["DRAFT004", "DRAFT004"]


def test_there_and_back_they_are_the_same(toy: Path, converted: dict[str, Path], tmp_path: Path) -> None:
    for source, to, name in (("speculators", "sglang", "a"), ("vllm", "sglang", "b"), ("sglang", "vllm", "c")):
        assert (
            draft("convert", converted[source], tmp_path / name, "--to", to, "--target", toy / "target").exit_code == 0
        )
        same = converted[to]
        assert config(tmp_path / name) == config(same), (source, to)
        assert (tmp_path / name / "model.safetensors").read_bytes() == (same / "model.safetensors").read_bytes()


def test_eval_feeds_it_from_them_whoever_wrote_the_list(
    toy: Path, trained: Path, converted: dict[str, Path], tmp_path: Path
) -> None:
    found = promise(toy, trained)
    assert found == promise(toy, converted["sglang"]) == promise(toy, converted["vllm"])
    with pytest.raises(UsageError, match="is in the form of speculators: vigil draft convert"):
        promise(toy, converted["speculators"])
    usual = tmp_path / "usual"  # what an engine does that does not read the list
    usual.mkdir()
    (usual / "model.safetensors").write_bytes((trained / "model.safetensors").read_bytes())
    kept = {name: value for name, value in config(trained).items() if name not in {IDS, "eagle_config"}}
    (usual / "config.json").write_text(json.dumps(kept))
    assert promise(toy, usual) < 0.97 * found


def test_widen_refuses_it_and_a_training_of_others_does_not_go_on(toy: Path, trained: Path, tmp_path: Path) -> None:
    done = draft("widen", trained, tmp_path / "wide", "--times", "4")
    assert "names its boundaries; only a draft of the default ones is right for a deeper target" in str(done.exception)
    assert not (tmp_path / "wide").exists()
    states = str(trained.parent / "states")
    with pytest.raises(UsageError, match=r"states of something else: boundaries \[1, 3, 5\], not \[2, 3, 4\]"):
        launch(asked(toy, tmp_path / "draft", boundaries=None, states=states))
    with pytest.raises(UsageError, match=r"is of another training \(boundaries, states differ\)"):
        launch(asked(toy, trained, boundaries=(1, 3, 6)))


def test_more_or_fewer_than_three_are_said_to_the_engines_that_count_them(toy: Path, tmp_path: Path) -> None:
    launch(asked(toy, tmp_path, boundaries=(1, 5), epochs=1))
    assert config(tmp_path)["num_aux_hidden_states"] == 2
    found = inspect(str(tmp_path), str(toy / "target"), (("sglang", "0.5.23"), ("vllm", "0.33")))
    assert [one.as_trained for one in found.readings] == [True, True]
    assert promise(toy, tmp_path) >= 1


@pytest.mark.parametrize("given", ["", "1,x", "3,1", "1,1", "-1,2", "1.5", ",".join(map(str, range(65)))])
def test_a_list_that_is_none_is_one_line(given: str) -> None:
    with pytest.raises(UsageError, match="--boundaries"):
        boundaries_of(given)


def test_a_list_is_read_and_a_layer_that_the_target_lacks_is_refused(toy: Path, tmp_path: Path) -> None:
    assert boundaries_of(None) is None
    assert boundaries_of("1, 3,5") == (1, 3, 5)
    given = ["--target", toy / "target", "--data", toy / "data", "--out", tmp_path]
    done = draft("train", *given, "--boundaries", "1,3,8")
    assert str(done.exception) == "boundaries (1, 3, 8): the target has 7 layers"
