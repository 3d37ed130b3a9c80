"""What is said of settings of an EAGLE-3 draft that an engine reads as another, or in another place."""

import json
from pathlib import Path
from typing import Any

import pytest

from preflight.lists import write_safetensors
from preflight.test_check_draft import DRAFT, LAYER, TARGET, findings, shapes
from vigil.preflight.finding import Severity
from vigil.preflight.judge_draft import judge_draft, look_at, nearest

NESTED = {
    name: value
    for name, value in DRAFT.items()
    if name not in {"architectures", "draft_vocab_size", "tie_word_embeddings"}
}
SPECULATORS = {
    **dict.fromkeys(DRAFT, ...),
    "architectures": ["Eagle3DraftModel"],
    "speculators_model_type": "eagle3",
    "draft_vocab_size": 32000,
    "tie_word_embeddings": False,
    "transformer_layer_config": NESTED,
}


def texts(version: str, engine: str = "sglang", tensors: Any = None, **config: Any) -> str:
    return " ".join(one.text for one in findings(version, tensors, engine=engine, **config).values())


def test_what_a_speculators_config_does_not_say_is_true_for_vllm_and_false_for_speculators() -> None:
    found = findings("0.32.0", shapes("layers.0"), engine="vllm", **SPECULATORS)["DRAFT005"]
    assert found.severity is Severity.WARNING
    assert "takes that for true, and speculators, which wrote it, for false" in found.text
    said = {**SPECULATORS, "norm_before_residual": False}
    assert findings("0.32.0", shapes("layers.0"), engine="vllm", **said) == {}


def test_a_speculators_config_is_read_by_vllm_from_0_10_on() -> None:
    said = {**SPECULATORS, "norm_before_residual": False}
    assert findings("0.9.2", shapes("layers.0"), engine="vllm", **said)["DRAFT001"].severity is Severity.FATAL
    assert findings("0.10.2", shapes("layers.0"), engine="vllm", **said) == {}


def test_a_window_is_read_by_vllm_and_a_flag_of_sglang() -> None:
    slides = {"layer_types": ["sliding_attention"], "sliding_window": 2048}
    assert "trained with a window of 2048 tokens" in texts("0.5.23", **slides)
    assert findings("0.32.0", engine="vllm", **slides) == {}
    assert "does not read that" in texts("0.9.2", "vllm", **slides)
    assert findings("0.5.23", layer_types=["full_attention"], sliding_window=2048) == {}


def test_a_draft_as_wide_as_its_inputs_together_is_not_led_through_fc_by_sglang() -> None:
    wide = {"target_hidden_size": 1365, "hidden_size": 4095, "num_attention_heads": 45, "head_dim": 91}
    assert "passes fc.weight over without a word" in texts("0.5.23", **wide)
    assert "passes fc.weight over" not in texts("0.32.0", "vllm", **wide)


@pytest.mark.parametrize(
    ("told", "what"), [(True, "feeds the normed state"), (False, "norms the state before its head")]
)
def test_norm_output_of_specforge_means_something_else_to_engines(*, told: bool, what: str) -> None:
    assert what in texts("0.5.23", norm_output=told)
    assert what in texts("0.32.0", "vllm", norm_output=told)
    assert findings("0.5.23", shapes("layers.0"), norm_output=told) == {}


def test_four_layers_beside_eagle_config_are_counted_as_three() -> None:
    four = shapes(fc__weight=(4096, 4 * 4096))
    found = findings("0.32.0", four, engine="vllm", eagle_aux_hidden_state_layer_ids=[2, 10, 16, 29])["SHAPE001"]
    assert found.severity is Severity.FATAL
    assert "is fed from 4 layers, [2, 10, 16, 29], and vLLM 0.32.0 counts 3" in found.text
    said = {"eagle_aux_hidden_state_layer_ids": [2, 10, 16, 29], "num_aux_hidden_states": 4}
    assert findings("0.32.0", four, engine="vllm", **said) == {}


def test_a_release_that_counts_no_inputs_takes_three() -> None:
    four = {"eagle_aux_hidden_state_layer_ids": [2, 10, 16, 29], "num_aux_hidden_states": 4}
    assert "makes fc for 3" in texts("0.5.10", tensors=shapes(fc__weight=(4096, 4 * 4096)), **four)


def test_a_prefix_is_one_too_many_for_vllm_and_loses_the_head_in_sglang() -> None:
    named = {f"model.{name}": shape for name, shape in shapes().items()}
    assert findings("0.32.0", named, engine="vllm")["DRAFT001"].severity is Severity.FATAL
    assert "model.lm_head.weight of d has `model.` before its name" in findings("0.5.23", named)["DRAFT002"].text


def test_layers_in_eagle_config_are_passed_over_by_vllms_new_runner_and_one_too_early_for_its_old_one() -> None:
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 11, 19]}}
    new = findings("0.32.0", engine="vllm", **nested)["DRAFT004"]
    assert "does not read them there and takes [2, 16, 29]" in new.text
    assert "[4, 12, 20] beside the other settings" in new.advice
    assert "as they are, one too early" in findings("0.23.0", engine="vllm", **nested)["DRAFT004"].text


def test_older_releases_of_vllm_read_no_list_in_eagle_config_and_the_oldest_none_at_all() -> None:
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 11, 19]}}
    unread = findings("0.19.1", engine="vllm", **nested)["DRAFT004"]
    assert "does not read the layer ids [3, 11, 19] of d, and feeds it from [2, 16, 29] without a word" in unread.text
    assert "[4, 12, 20] beside" in unread.advice
    beside = {"eagle_aux_hidden_state_layer_ids": [4, 12, 20]}
    assert "Take 0.11.2" in findings("0.10.2", engine="vllm", **beside)["DRAFT004"].advice
    assert findings("0.11.2", engine="vllm", **beside) == {}
    assert findings("0.10.2", engine="vllm", eagle_aux_hidden_state_layer_ids=[2, 16, 29]) == {}
    assert findings("0.19.1", engine="vllm", eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}) == {}


def test_a_list_in_eagle_config_of_vllms_own_class_is_counted_as_beside_it() -> None:
    own = {
        "architectures": ["Eagle3LlamaForCausalLM"],
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 11, 19]},
    }
    assert "[3, 11, 19] beside" in findings("0.32.0", engine="vllm", **own)["DRAFT004"].advice
    assert findings("0.23.0", engine="vllm", **own) == {}


def test_targets_for_which_sglang_counts_in_another_way_are_noted() -> None:
    listed = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 15, 28]}}
    gpt = {**TARGET, "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}
    assert findings("0.5.23", target=gpt, **listed)["DRAFT004"].severity is Severity.NOTE


@pytest.mark.parametrize(
    ("engine", "version", "there", "advice"),
    [
        ("sglang", "0.5.23", "input_layernorm", "layers.1.input_layernorm.weight"),
        ("vllm", "0.32.0", "hidden_norm", "layers.1.hidden_norm.weight"),
    ],
)
def test_a_second_layers_norm_has_another_name_in_each_engine(
    engine: str, version: str, there: str, advice: str
) -> None:
    second = {
        f"layers.1.{name}": shape
        for name, shape in LAYER.items()
        if not name.endswith(("input_layernorm.weight", "hidden_norm.weight"))
    }
    for part in ("q", "k", "v"):
        name = f"layers.1.self_attn.{part}_proj.weight"
        second[name] = (second[name][0], 4096)
    second[f"layers.1.{there}.weight"] = (4096,)
    found = findings(version, {**shapes("layers.0"), **second}, engine=engine, num_hidden_layers=2)
    assert set(found) == {"DRAFT003"}
    assert f"`vigil draft convert --to {engine}` renames it: it is there as {advice}" in found["DRAFT003"].advice


def test_a_theta_in_rope_parameters_alone_is_not_found_by_old_transformers() -> None:
    told = {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}
    assert "rope_theta 500000 of d stands in rope_parameters alone" in texts("0.5.2", **told)
    assert findings("0.5.2", rope_theta=500000.0, **told) == {}
    assert findings("0.5.23", **told) == {}


def test_the_nearest_release_of_the_table_is_by_number() -> None:
    assert [nearest("sglang", one) for one in ("0.4.9", "0.5.17", "0.5.99", "0.1")] == [
        "0.4.9",
        "0.5.18",
        "0.5.23",
        "0.4.9",
    ]
    assert [nearest("vllm", one) for one in ("0.10", "0.20", "0.33.0")] == ["0.10.2", "0.19.1", "0.32.0"]


def test_a_folder_is_judged_without_a_command_and_says_what_a_check_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(DRAFT))
    told = {name: f"BF16 {'x'.join(map(str, shape))}" for name, shape in shapes("layers.0").items()}
    write_safetensors(folder / "model.safetensors", {**told, "d2t": "I64 32000"})
    draft, target = look_at(str(folder))
    assert target is None
    assert [one.code for one in judge_draft("sglang", "0.5.10", draft, None)] == ["DRAFT002"]
    assert judge_draft("sglang", "0.5.23", draft, None) == []
