"""What inspect says of a toy draft is what the engine's own loader did with it: each trap, in both engines.

`loaders.json` is what `loaders.py` saw in vLLM 0.32 and SGLang 0.5.23; `tests/real` has it made again where they are installed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from drafts import make
from vigil.preflight.finding import Severity
from vigil_draft.inspect.inspection import Reading, inspect

TOLD = json.loads(Path(__file__).with_name("loaders.json").read_text())
USUAL = [2, 4, 5]
LISTED = [1, 3, 6]
# The boundaries that a case was made for; the default ones where it names none.
TRAINED = dict.fromkeys(
    (
        "specforge", "norm-output", "vllm", "speculators", "residual-unsaid", "ids-beside", "qwen3", "qwen3-without-norms",
        "head-norms-vllm",
    ),
    LISTED,
)  # fmt: skip
HARMLESS = {"t2d", "model.t2d"}
SHARED = {"model.embed_tokens.weight", "model.layers.0.self_attn.o_proj.bias"}
"""What the target gives where the draft has none; and a bias that only one of two loaders of biases makes."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toys")
    make.write_target(folder / "target")
    for name, made in make.CASES.items():
        made().write(folder / name)
    return folder


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def reading(place: Path, case: str, engine: str) -> Reading:
    found = inspect(str(place / case), str(place / "target"), ((engine, TOLD[engine]["version"]),))
    return found.readings[0]


def damage(case: str, engine: str) -> set[str]:
    """Return what the loader did to a draft, by the codes of the findings that should say so."""
    told, config = TOLD[engine]["cases"][case], make.CASES[case]().config
    found = set()
    used = (told["later_norm"] or "").split(", ")
    idle = {f"model.layers.1.{one}.weight" for one in ("input_layernorm", "hidden_norm") if one not in used}
    if set(told.get("dropped", ())) - HARMLESS or not told.get("through_fc", True):
        found.add("DRAFT002")
    lost = {name.removeprefix("model.") for name in told.get("dropped", ())}  # what was dropped is told once
    if set(told["untouched"]) - SHARED - idle - lost - {"draft_id_to_target_id"}:
        found.add("DRAFT003")
    asked = told["boundaries"] if engine == "sglang" else told["boundaries_new_runner"]
    if (asked or USUAL) != TRAINED.get(case, USUAL):
        found.add("DRAFT004")
    if misread(told, config):
        found.add("DRAFT005")
    if not told["mapped"]:
        found.add("DRAFT006")
    return found


def misread(told: dict[str, Any], config: dict[str, Any]) -> bool:
    """Tell whether the loaded model computes something else than the config says, in the words of who wrote it."""
    return (
        (told["residual"] == "after hidden_norm") is not bool(config.get("norm_before_residual"))
        or told["bias"] is not bool(config.get("attention_bias"))
        or told["window"] != (config.get("sliding_window"))
        or told["norm_output"]  # by SpecForge's words it says something of the head
    )


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("case", list(make.CASES))
def test_inspect_says_what_the_loader_did(case: str, engine: str, place: Path) -> None:
    found = reading(place, case, engine)
    known = [one for one in found.findings if one.code != "FLAG003"]
    told = TOLD[engine]["cases"][case]
    assert found.loads is ("error" not in told) or case == "short", [one.text for one in found.findings]
    if "error" not in told:
        assert {one.code for one in known if one.severity is not Severity.NOTE} == damage(case, engine), told


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_every_tensor_that_was_dropped_is_named(engine: str, place: Path) -> None:
    for case, told in TOLD[engine]["cases"].items():
        for name in set(told.get("dropped", ())) - HARMLESS:
            texts = " ".join(one.text for one in reading(place, case, engine).findings if one.code == "DRAFT002")
            assert name in texts, case


def test_every_case_was_loaded_by_both_and_the_traps_are_traps() -> None:
    assert all(set(TOLD[engine]["cases"]) == set(make.CASES) for engine in ("sglang", "vllm"))
    plain = {*make.FORMS, "short"}
    caught = {
        case for case in make.CASES for engine in TOLD if "error" in TOLD[engine]["cases"][case] or damage(case, engine)
    }
    assert set(make.CASES) - caught <= plain
    assert TOLD["vllm"]["cases"]["short"]["positions"] == make.TARGET["max_position_embeddings"]


def test_a_draft_made_for_shorter_texts_ends_sglang_and_is_stretched_by_vllm(place: Path) -> None:
    assert [one.code for one in reading(place, "short", "sglang").findings] == ["FLAG003"]
    assert reading(place, "short", "vllm").findings == ()
