"""What is said of models: with the numbers, with the words that it is about, and with the command as it would be right."""

import shlex
from typing import Any

import pytest

from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Report, Severity
from vigil.preflight.releases import covers, hands_out, numbers_of, serves, span
from vigil.preflight.seen_models import BuildSeen, FileSeen, ModelSeen
from vigil.preflight.seen_parser import ParserSeen
from vigil.preflight.sight import Sight

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "num_hidden_layers": 32,
    "max_position_embeddings": 131072,
}  # fmt: skip
WHOLE = FileSeen(name="model.safetensors", size_bytes=10)


def report(
    words: str, config: dict[str, Any] | None = None, *, env: dict[str, str] | None = None, **seen: Any
) -> Report:
    """Return what is found of a command whose model is "m"."""
    engine = "vllm" if words.startswith("vllm") else "sglang" if "sglang" in words else "llamacpp"
    there = {"path": "/m", "kind": "folder", "config": LLAMA if config is None else config}
    about = {**there, "files": (WHOLE,), "tokenizer": ("tokenizer.json",), **seen}
    own = {"vllm": 2, "sglang": 3, "llamacpp": 1}[engine]
    command = Command(words=tuple(shlex.split(words)), own=own, engine=engine, env=env or {})
    version = {"vllm": "0.19.1", "sglang": "0.5.10"}.get(engine)
    return examine(
        command, Sight(parser=ParserSeen(version=version), models=(ModelSeen(what="model", given="m", **about),))
    )


def codes(found: Report) -> list[str]:
    return [one.code for one in found.fatal]


def test_a_good_command_gives_nothing_to_say() -> None:
    assert report("vllm serve m --tensor-parallel-size 8 --max-model-len 131072").findings == ()


def test_the_words_that_it_is_about_are_marked() -> None:
    found = report("vllm serve m --tensor-parallel-size 5").fatal[0]
    assert (found.at, found.count) == (3, 2)
    uneven = (
        "32 attention heads",
        "8 heads for keys and values",
        "an intermediate size of 14336",
        "128256 tokens (padded)",
    )
    assert found.text == f"The model cannot be split 5 ways: it has {' and '.join(uneven)}."
    assert found.advice == "Sizes that divide it: 1, 2, 4, 8, 16, 32."


@pytest.mark.parametrize("more", ["--enable-dp-attention --dp 5", "--device cpu"])
def test_where_heads_are_split_in_another_way_nothing_is_said(more: str) -> None:
    assert codes(report(f"python -m sglang.launch_server --model-path m --tp 5 {more}")) == []


def test_a_context_that_is_too_long_is_put_right_in_place() -> None:
    found = report("vllm serve m --max-model-len=200k --port 1")
    assert found.corrected == ("vllm", "serve", "m", "--max-model-len=131072", "--port", "1")
    found = report("python -m sglang.launch_server --model-path m --context-length 200000")
    assert found.corrected is not None
    assert found.corrected[-2:] == ("--context-length", "131072")


def test_a_variable_makes_a_long_context_a_warning() -> None:
    found = report("vllm serve m --max-model-len 200000", env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"})
    assert [one.severity for one in found.findings] == [Severity.WARNING]
    assert found.corrected is None  # it was asked for on purpose


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 131072),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 65536}, 262144),
        ({"type": "linear", "factor": 2.0}, 262144),
        ({"rope_type": "default", "rope_theta": 1e6}, 131072),
    ],
)
def test_scaling_counts_as_far_as_any_engine_lets_it(scaling: dict[str, Any], longest: int) -> None:
    config = {**LLAMA, "rope_scaling": scaling}
    assert codes(report(f"vllm serve m --max-model-len {longest}", config)) == []
    assert codes(report(f"vllm serve m --max-model-len {longest + 1}", config)) == ["FLAG003"]


def test_an_override_of_the_config_leaves_it_to_the_engine() -> None:
    assert codes(report("""vllm serve m --max-model-len 999999 --hf-overrides '{"a": 1}'""")) == []


def test_broken_files_are_counted_and_the_first_is_told_whole() -> None:
    files = [
        FileSeen(name=f"m{one}.safetensors", size_bytes=10, wanted_bytes=30, trouble="it is cut off")
        for one in range(9)
    ]
    found = report("vllm serve m", files=(WHOLE, *files)).fatal[0]
    assert found.text.startswith("m0.safetensors of m cannot be loaded: it is cut off.")
    assert "8 more of its 10 files cannot be loaded either: m1.safetensors" in found.text
    assert found.advice == "Fetch it again: 20 bytes are missing."


def test_what_the_hub_would_still_fetch_is_not_missing() -> None:
    assert codes(report("vllm serve m", files=(), tokenizer=(), cached=True)) == []
    assert codes(report("vllm serve m", files=(), tokenizer=(), cached=True, offline="HF_HUB_OFFLINE=1")) == [
        "TOK001",
        "FILE003",
    ]


def test_the_installed_engine_has_the_last_word_on_architectures() -> None:
    config = {**LLAMA, "architectures": ["NewForCausalLM"]}
    known = BuildSeen(version="9.9", known=("NewForCausalLM",), by_transformers=False)
    assert report("vllm serve m", config, build=known).findings == ()
    unknown = BuildSeen(version="9.9", known=(), by_transformers=False)
    assert codes(report("vllm serve m", config, build=unknown)) == ["ARCH001"]
    fallback = BuildSeen(version="9.9", known=(), by_transformers=True)
    assert report("vllm serve m", config, build=fallback).findings == ()
    assert report("vllm serve m", config, build=BuildSeen(version="9.9")).findings == ()


def test_a_table_alone_refuses_only_what_a_later_release_has() -> None:
    found = report("vllm serve m", {**LLAMA, "architectures": ["NobodyKnowsForCausalLM"]})
    assert [(one.code, one.severity) for one in found.findings] == [("ARCH001", Severity.WARNING)]


@pytest.mark.parametrize("given", ["s3://bucket/m", "$MODELS/m", "m"])
def test_a_name_that_may_stand_for_something_else_is_not_refused(given: str) -> None:
    command = Command(words=("vllm", "serve", given), own=2, engine="vllm")
    model = ModelSeen(what="model", given=given, path=None, sure=given == "m")
    assert examine(command, Sight(models=(model,))).fatal == ()


def test_the_table_speaks_for_releases_between_its_own_and_for_none_beyond() -> None:
    assert serves("sglang", "0.5.2", "GptOssForCausalLM")
    assert not serves("sglang", "0.4.9", "GptOssForCausalLM")
    assert serves("sglang", "0.4.10", "GptOssForCausalLM")  # 0.5.2 has it: it may have come before
    assert (covers("sglang", "0.5.99"), covers("sglang", "0.4.1"), covers("vllm", None)) == (False, False, False)
    assert hands_out("vllm", "0.10.2", "Qwen3MoeForCausalLM") is False
    assert hands_out("vllm", "0.11.0", "Qwen3MoeForCausalLM")
    assert span("vllm", "GptOssForCausalLM") == "it is in 0.10.2 to 0.32.0"
    assert numbers_of("0.5.10.post1+cu128") == (0, 5, 10)


@pytest.mark.parametrize(
    "nasty", [{}, [], "x", -1, 0, 1 << 200, None, True, 1.5, float("inf"), ["x"], [{}], {"factor": {}}]
)
@pytest.mark.parametrize(
    "words",
    [
        "vllm serve m --tensor-parallel-size 3 --max-model-len 99 --quantization awq",
        "python -m sglang.launch_server --model-path m --tp 3 --context-length 99 -q gptq",
    ],
)
def test_any_value_of_any_setting_gives_an_answer(words: str, nasty: Any) -> None:
    for name in (
        *LLAMA,
        "rope_scaling",
        "rope_parameters",
        "quantization_config",
        "auto_map",
        "text_config",
        "kv_lora_rank",
        "num_experts",
    ):
        report(words, {**LLAMA, name: nasty})
        report(words, {"text_config": {**LLAMA, name: nasty}})
        report(
            words,
            {**LLAMA, "rope_scaling": {"factor": nasty, "rope_type": nasty, "original_max_position_embeddings": nasty}},
        )
