"""What a llama-server holds, where, and what is said where that is too little."""

import shlex
from typing import Any

import pytest

from preflight.hosts import host_of
from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.llama_needs import cache_of
from vigil.preflight.seen_models import FileSeen, GgufSeen, ModelSeen
from vigil.preflight.sight import Sight

GIB = 1 << 30
SMOL: dict[str, Any] = {  # SmolLM2-135M-Instruct
    "general.architecture": "llama", "llama.block_count": 30, "llama.embedding_length": 576, "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3, "llama.context_length": 8192,
}  # fmt: skip
LARGE = {
    **SMOL,
    "llama.block_count": 80,
    "llama.embedding_length": 8192,
    "llama.attention.head_count": 64,
    "llama.attention.head_count_kv": 8,
}


def command(more: str, env: dict[str, str] | None = None) -> Command:
    return Command(words=("llama-server", "-m", "m.gguf", *shlex.split(more)), own=1, engine="llamacpp", env=env or {})


def cached(more: str, metadata: dict[str, Any] = SMOL, env: dict[str, str] | None = None) -> int | None:
    """Return the bytes of the cache."""
    found = cache_of(command(more, env), GgufSeen(version=3, metadata=metadata))
    return found.bytes if found is not None else None


def said(
    more: str, *, weights: int = 40 * GIB, gpus: Any = 1, env: dict[str, str] | None = None, **memory: int
) -> list[Finding]:
    """Return what is said of memory."""
    file = FileSeen(name="m.gguf", size_bytes=weights, gguf=GgufSeen(version=3, metadata=LARGE))
    model = ModelSeen(what="model", given="m.gguf", path="/m.gguf", kind="file", files=(file,), weights_bytes=weights)
    program = {"path": "/opt/llama-server", "python": False}
    host = host_of({"gpus": gpus, "program": program, "memory": {"swap": 0, **memory}})
    found = examine(command(more, env), Sight(host=host, models=(model,)))
    return [one for one in found.findings if one.code.startswith("MEM")]


def test_the_cache_is_as_large_as_llama_cpp_says_it_is() -> None:
    # llama_kv_cache: size = 90.00 MiB (4096 cells, 30 layers, 2/1 seqs), of xllamacpp 2026.10 with -c 4096 -np 2
    assert cached("-c 4096 -np 2") == 90 << 20
    assert cached("-c 0") == 180 << 20
    assert cached("-c 4096 -ctk q8_0 -ctv q8_0") == (90 << 20) * 34 // 64
    assert cached("", env={"LLAMA_ARG_CTX_SIZE": "4096"}) == 90 << 20


def test_a_draft_that_is_a_model_of_its_own_has_a_cache_as_long_as_the_targets() -> None:
    # two of llama_kv_cache: size = 90.00 MiB (4096 cells, 30 layers), of xllamacpp 2026.10 with -md of the same model
    both = cache_of(command("-c 4096 -np 2"), seen := GgufSeen(version=3, metadata=SMOL), seen)
    small = cache_of(command("-c 4096 -ctkd q8_0 -ctvd q8_0"), seen, seen)

    assert both is not None
    assert (both.bytes, both.told) == (180 << 20, "f16; 90.0 MiB of it for the draft")
    assert small is not None
    assert small.bytes == (90 << 20) + (90 << 20) * 34 // 64


@pytest.mark.parametrize("kind", ["draft-simple", "draft-eagle3"])
def test_only_a_draft_of_its_own_is_counted_against_the_hosts_memory(kind: str) -> None:
    gguf = GgufSeen(version=3, metadata=LARGE)
    models = tuple(
        ModelSeen(what=what, given="m", path="/m", kind="file", files=(FileSeen(name="m", size_bytes=1, gguf=gguf),))
        for what in ("model", "-md")
    )
    host = host_of({"gpus": 0, "program": {"path": "/opt/l", "python": False}, "memory": {"free": 60 * GIB, "swap": 0}})
    asked = command(f"-c 131072 -md d.gguf --spec-type {kind}")

    codes = {one.code for one in examine(asked, Sight(host=host, models=models)).findings}

    assert ("MEM003" in codes) is (kind == "draft-simple")  # 40 GiB, or twice that


@pytest.mark.parametrize("more", ["", "-c -1", "-c 4k", "-c $CTX", "-c 4096 -ctk turbo3"])
def test_what_is_not_known_is_not_reckoned(more: str) -> None:
    assert cached(more) is None


@pytest.mark.parametrize(
    "other",
    [
        {"general.architecture": "gemma3"},
        {"llama.attention.sliding_window": 4096},
        {"llama.ssm.state_size": 16},
        {"llama.embedding_length": "wide"},
        {"llama.block_count": -1},
    ],
)
def test_a_model_that_keeps_another_cache_is_left_alone(other: dict[str, Any]) -> None:
    found = cached("-c 4096", {**SMOL, **other})
    assert found is None or found <= 0


def test_heads_that_differ_by_layer_are_left_alone() -> None:
    metadata = {name: value for name, value in SMOL.items() if not name.endswith("head_count_kv")}
    gguf = GgufSeen(version=3, metadata=metadata, lengths={"llama.attention.head_count_kv": 30})
    assert cache_of(command("-c 4096"), gguf) is None


def test_a_cache_beyond_all_memory_is_the_end_where_no_gpu_may_take_it() -> None:
    (found,) = said("-ngl 0 -c 1048576", total=64 * GIB, free=60 * GIB)
    assert (found.code, found.severity, found.at, found.count) == ("MEM003", Severity.FATAL, 5, 2)
    assert found.text.startswith(
        "the cache of 1048576 tokens takes 320.0 GiB (f16), and the host has 60.0 GiB free, and 64.0 GiB"
    )
    assert found.advice.startswith("about 196608 tokens fit")
    (soft,) = said("-ngl 0 -c 1048576", total=64 * GIB, free=60 * GIB, swap=512 * GIB)
    assert soft.severity is Severity.WARNING
    (other,) = said("-c 1048576", gpus=0, total=64 * GIB, free=60 * GIB)  # a GPU that is not NVIDIA's may be there
    assert other.severity is Severity.WARNING


def test_layers_that_must_lie_on_the_gpus_must_fit_there() -> None:
    (found,) = said("-ngl 99 -c 131072")
    assert (found.code, found.severity, found.at) == ("MEM001", Severity.WARNING, 3)
    assert found.text == "weights 40.0 GiB + cache 40.0 GiB of 131072 tokens (f16) > 79.0 GiB free on the GPU"
    assert said("-ngl 99 -c 131072", gpus=2) == []
    assert len(said("-ngl 99 -c 131072 -sm none", gpus=2)) == 1
    assert said("-ngl 40 -c 131072") == []
    assert said("-c 131072") == []  # as many layers as fit


@pytest.mark.parametrize("more", ["-ot exps=CPU", "--cpu-moe", "--device CUDA0", "--rpc 10.0.0.1:50052"])
def test_weights_that_lie_elsewhere_are_not_counted(more: str) -> None:
    assert said(f"-ngl 99 -c 131072 {more}") == []


def test_unified_memory_takes_what_the_gpu_does_not() -> None:
    assert said("-ngl 99 -c 131072", env={"GGML_CUDA_ENABLE_UNIFIED_MEMORY": "1"}) == []


def test_mapped_weights_need_not_be_held() -> None:
    assert said("-ngl 0 -c 8192", weights=400 * GIB) == said("-ngl 0 -c 8192", weights=1) == []
    (found,) = said("-ngl 0 -c 8192 --no-mmap", weights=1000 * GIB)
    assert (found.code, found.severity) == ("MEM003", Severity.WARNING)
    assert "--no-mmap keeps all weights in memory" in found.text


def test_a_control_group_is_all_there_is() -> None:
    (found,) = said("-ngl 0 -c 131072", total=1000 * GIB, free=900 * GIB, limit=16 * GIB)
    assert found.severity is Severity.FATAL
    assert "the host has 16.0 GiB free" in found.text


def test_a_host_without_the_program_says_nothing_of_where_it_will_run() -> None:
    file = FileSeen(name="m.gguf", size_bytes=1, gguf=GgufSeen(version=3, metadata=LARGE))
    model = ModelSeen(what="model", given="m.gguf", path="/m.gguf", kind="file", files=(file,))
    for told in ({"program": None}, {"outside": True}):
        host = host_of({"memory": {"total": GIB, "free": GIB, "swap": 0}, **told})
        assert examine(command("-ngl 0 -c 1048576"), Sight(host=host, models=(model,))).fatal == ()
