"""What is said of drafts that are served, and are less than they look: each engine in its own words."""

import json
from typing import Any

import pytest

from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.seen_models import FileSeen, MapSeen, ModelSeen, TensorSeen
from vigil.preflight.seen_parser import ParserSeen
from vigil.preflight.sight import Sight

TARGET: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336, "vocab_size": 128256, "num_hidden_layers": 32,
    "max_position_embeddings": 8192,
}  # fmt: skip
DRAFT = {
    **TARGET,
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
    "tie_word_embeddings": False,
}
LAYER = {
    "self_attn.q_proj.weight": (4096, 8192), "self_attn.k_proj.weight": (1024, 8192), "self_attn.v_proj.weight": (1024, 8192),
    "self_attn.o_proj.weight": (4096, 4096), "mlp.gate_proj.weight": (14336, 4096), "mlp.up_proj.weight": (14336, 4096),
    "mlp.down_proj.weight": (4096, 14336), "input_layernorm.weight": (4096,), "hidden_norm.weight": (4096,),
    "post_attention_layernorm.weight": (4096,),
}  # fmt: skip
REST = {"d2t": (32000,), "fc.weight": (4096, 3 * 4096), "norm.weight": (4096,), "lm_head.weight": (32000, 4096)}
MAP = MapSeen(
    dtype="I64", shape=(32000,), lowest=0, highest=96255, lowest_moved=0, highest_moved=128254, total=1, different=32000
)
SGLANG = "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d"


def shapes(layer: str = "midlayer", **others: tuple[int, ...] | None) -> dict[str, tuple[int, ...]]:
    found = {**{f"{layer}.{name}": shape for name, shape in LAYER.items()}, **REST}
    for name, shape in others.items():
        plain = name.replace("__", ".")
        if shape is None:
            found.pop(plain)
        else:
            found[plain] = shape
    return found


def findings(
    version: str,
    tensors: dict[str, tuple[int, ...]] | None = None,
    *,
    maps: dict[str, MapSeen] | None = None,
    target: dict[str, Any] | None = None,
    engine: str = "sglang",
    **config: Any,
) -> dict[str, Finding]:
    """Return what is found of a draft, by code; `config` changes its settings, `...` takes one away."""
    own = {name: value for name, value in {**DRAFT, **config}.items() if value is not ...}
    seen = {name: TensorSeen(dtype="BF16", shape=shape) for name, shape in (tensors or shapes()).items()}
    file = FileSeen(name="model.safetensors", size_bytes=1, maps={"d2t": MAP} if maps is None else maps)
    whole = ModelSeen(
        what="model",
        given="m",
        path="/m",
        kind="folder",
        config=target or TARGET,
        tokenizer=("tokenizer.json",),
        pickles=("a.bin",),
    )
    flag = "--speculative-draft-model-path" if engine == "sglang" else "--speculative-config"
    draft = ModelSeen(what=flag, given="d", path="/d", kind="folder", config=own, files=(file,), tensors=seen)
    words = (
        SGLANG.split()
        if engine == "sglang"
        else ["vllm", "serve", "m", flag, json.dumps({"method": "eagle3", "model": "d", "num_speculative_tokens": 3})]
    )
    command = Command(words=tuple(words), own=3 if engine == "sglang" else 2, engine=engine)
    report = examine(command, Sight(parser=ParserSeen(version=version), models=(whole, draft)))
    return {one.code: one for one in report.findings if one.code not in {"FILE005", "SPEC005"}}


@pytest.mark.parametrize("version", ["0.4.9", "0.5.2", "0.5.10", "0.5.12", "0.5.23"])
def test_a_draft_that_every_release_takes_gives_nothing_to_say(version: str) -> None:
    assert findings(version) == {}
    assert findings("0.32.0", engine="vllm") == {}


def test_sglang_before_0_5_12_drops_the_ten_tensors_of_layers_0_and_says_how_to_rename_them() -> None:
    found = findings("0.5.10", shapes("layers.0"))
    assert set(found) == {"DRAFT002"}
    assert found["DRAFT002"].severity is Severity.WARNING
    assert (
        "SGLang 0.5.10 drops these 10 tensors of d without a word: layers.0.self_attn.q_proj.weight"
        in found["DRAFT002"].text
    )
    assert "Rename `layers.0.` to `midlayer.`" in found["DRAFT002"].advice
    assert findings("0.5.12", shapes("layers.0")) == {}


def test_between_two_releases_that_differ_nothing_is_said_of_names() -> None:
    assert findings("0.5.11", shapes("layers.0")) == {}


def test_a_norm_that_a_release_does_not_know_is_named_and_in_vllm_it_is_the_end() -> None:
    extra = shapes(input_norm__weight=(12288,))
    silent = findings("0.5.15", extra, norm_before_fc=True)
    assert "drops this tensor of d without a word: input_norm.weight" in silent["DRAFT002"].text
    assert "does not read norm_before_fc" in silent["DRAFT005"].text
    assert findings("0.5.18", extra, norm_before_fc=True) == {}
    assert findings("0.13.0", extra, engine="vllm", norm_before_fc=True)["DRAFT001"].severity is Severity.FATAL


def test_norm_before_residual_is_read_by_vllm_alone() -> None:
    assert "norm_before_residual" in findings("0.5.23", norm_before_residual=True)["DRAFT005"].text
    assert findings("0.32.0", engine="vllm", norm_before_residual=True) == {}


def test_biases_are_dropped_by_sglang_and_taken_by_vllm() -> None:
    extra = shapes(midlayer__self_attn__q_proj__bias=(4096,))
    found = findings("0.5.23", {name.replace("__", "."): one for name, one in extra.items()}, attention_bias=True)
    assert set(found) == {"DRAFT002", "DRAFT005"}
    assert findings("0.32.0", extra, engine="vllm", attention_bias=True) == {}


def test_a_tied_config_drops_the_drafts_own_head() -> None:
    found = findings("0.5.23", tie_word_embeddings=True)["DRAFT002"]
    assert "lm_head.weight" in found.text
    assert '"tie_word_embeddings": false' in found.advice


def test_what_is_missing_is_named_since_no_engine_does() -> None:
    tensors = shapes()
    del tensors["midlayer.hidden_norm.weight"], tensors["norm.weight"]
    assert "lacks 2 tensors: layers.0.hidden_norm.weight, norm.weight" in findings("0.5.23", tensors)["DRAFT003"].text


def test_a_missing_head_is_silent_in_sglang_and_kills_vllm() -> None:
    assert findings("0.5.23", shapes(lm_head__weight=None))["DRAFT003"].severity is Severity.WARNING
    assert findings("0.32.0", shapes(lm_head__weight=None), engine="vllm")["DRAFT001"].severity is Severity.FATAL


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (MapSeen(dtype="F32", shape=(32000,)), "has the type F32"),
        (MapSeen(dtype="I64", shape=(31999,)), "has the shape 31999, and draft_vocab_size is 32000"),
        (
            MapSeen(dtype="I64", shape=(32000,), lowest=0, highest=128255, lowest_moved=0, highest_moved=160254),
            "it holds target ids, where offsets are wanted",
        ),
        (
            MapSeen(dtype="I64", shape=(32000,), lowest=-9, highest=3, lowest_moved=-5, highest_moved=32002),
            "leads to the tokens -5",
        ),
    ],
)
def test_a_map_that_leads_nowhere_is_fatal_and_says_why(seen: MapSeen, why: str) -> None:
    found = findings("0.5.23", maps={"d2t": seen})["DRAFT001"]
    assert found.severity is Severity.FATAL
    assert why in found.text


def test_no_map_is_silent_in_both_and_none_is_needed_for_a_whole_vocabulary() -> None:
    assert findings("0.5.23", shapes(d2t=None), maps={})["DRAFT006"].severity is Severity.WARNING
    whole = shapes(d2t=None, lm_head__weight=(128256, 4096))
    assert findings("0.5.23", whole, maps={}, draft_vocab_size=128256) == {}


def test_a_mask_that_does_not_count_the_drafts_tokens_is_noted() -> None:
    mask = MapSeen(dtype="BOOL", shape=(128256,), lowest=0, highest=1, total=31000)
    assert findings("0.5.23", maps={"d2t": MAP, "t2d": mask})["DRAFT006"].severity is Severity.NOTE


def test_layers_are_counted_in_two_ways() -> None:
    by_vllm, by_sglang = [2, 16, 29], [1, 15, 28]
    assert findings("0.5.23", eagle_config={"eagle_aux_hidden_state_layer_ids": by_sglang}) == {}
    assert findings("0.32.0", engine="vllm", eagle_aux_hidden_state_layer_ids=by_vllm) == {}
    assert findings("0.5.23", eagle_aux_hidden_state_layer_ids=by_vllm) == {}  # what it takes by itself
    far = findings("0.5.23", eagle_config={"eagle_aux_hidden_state_layer_ids": by_vllm})["DRAFT004"]
    assert "each layer would be one too far" in far.text
    assert "[1, 15, 28]" in far.advice
    early = findings("0.32.0", engine="vllm", eagle_config={"eagle_aux_hidden_state_layer_ids": by_sglang})["DRAFT004"]
    assert "[2, 16, 29]" in early.advice


def test_layers_beside_eagle_config_are_not_read_by_sglang() -> None:
    found = findings("0.5.23", eagle_aux_hidden_state_layer_ids=[4, 12, 20])["DRAFT004"]
    assert found.severity is Severity.WARNING
    assert "fed from the layers [2, 16, 29] without a word" in found.text
    assert '"eagle_aux_hidden_state_layer_ids": [3, 11, 19]' in found.advice


def test_a_layer_that_the_target_does_not_have_is_fatal() -> None:
    found = findings("0.5.23", eagle_config={"eagle_aux_hidden_state_layer_ids": [1, 29, 57]})["DRAFT001"]
    assert (found.severity, "[57] is never met" in found.text) == (Severity.FATAL, True)


def test_the_output_of_the_last_layer_is_one_that_sglang_never_takes_and_vllm_does() -> None:
    """SGLang takes a state before the layer behind it runs (0.5.23, llama.py), vLLM after each (0.32, interfaces.py)."""
    last, before = [1, 15, 31], [1, 15, 30]
    ids = {"eagle_aux_hidden_state_layer_ids": last}
    assert "[31] is never met" in findings("0.5.23", eagle_config=ids)["DRAFT001"].text
    assert "DRAFT001" not in findings("0.5.23", eagle_config={"eagle_aux_hidden_state_layer_ids": before})
    assert "DRAFT001" not in findings("0.32.0", engine="vllm", eagle_aux_hidden_state_layer_ids=[2, 16, 32])


def test_another_vocabulary_than_the_targets_is_a_warning() -> None:
    found = findings("0.5.23", target={**TARGET, "vocab_size": 151936})
    assert found["DRAFT007"].severity is Severity.WARNING


def test_a_shorter_draft_ends_sglang_and_older_releases_only_accept_less() -> None:
    assert findings("0.5.23", max_position_embeddings=2048)["FLAG003"].severity is Severity.FATAL
    assert findings("0.4.9", max_position_embeddings=2048)["FLAG003"].severity is Severity.WARNING
    assert findings("0.23.0", engine="vllm", max_position_embeddings=2048)["FLAG003"].severity is Severity.WARNING
    assert findings("0.32.0", engine="vllm", max_position_embeddings=2048) == {}


@pytest.mark.parametrize("nasty", [{}, [], "x", -1, 0, 1 << 200, None, True, 1.5, ["x"], {"a": {}}])
@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_any_value_of_any_setting_gives_an_answer(nasty: Any, engine: str) -> None:
    names = (
        *DRAFT, "eagle_config", "eagle_aux_hidden_state_layer_ids", "num_aux_hidden_states", "target_hidden_size", "fc_norm",
        "transformer_layer_config", "rope_scaling", "rope_parameters", "quantization_config", "auto_map", "text_config",
    )  # fmt: skip
    for name in names:
        findings("0.5.23" if engine == "sglang" else "0.32.0", engine=engine, **{name: nasty})
        findings("0.5.23" if engine == "sglang" else "0.32.0", engine=engine, target={**TARGET, name: nasty})
