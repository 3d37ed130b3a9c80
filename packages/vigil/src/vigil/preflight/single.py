"""Flags of which one value counts, and those of them that are numbers, by engine: the ones that people repeat and leave empty."""

SINGLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "sglang": (
        ("--port",), ("--host",), ("--model-path", "--model"), ("--tp", "--tp-size", "--tensor-parallel-size"),
        ("--dp", "--dp-size", "--data-parallel-size"), ("--pp-size", "--pipeline-parallel-size"), ("--mem-fraction-static",),
        ("--context-length",), ("--max-running-requests",), ("--chunked-prefill-size",), ("--page-size",), ("--quantization",),
        ("--dtype",), ("--speculative-algorithm",), ("--speculative-num-steps",), ("--speculative-eagle-topk",),
        ("--speculative-num-draft-tokens",), ("--speculative-draft-model-path", "--speculative-draft-model"),
        ("--attention-backend",), ("--kv-cache-dtype",), ("--max-total-tokens",), ("--nnodes",), ("--node-rank",),
    ),
    "vllm": (
        ("--port",), ("--host",), ("--model",), ("--tensor-parallel-size", "-tp"), ("--pipeline-parallel-size", "-pp"),
        ("--data-parallel-size", "-dp"), ("--gpu-memory-utilization",), ("--max-model-len",), ("--max-num-seqs",),
        ("--max-num-batched-tokens",), ("--block-size",), ("--quantization", "-q"), ("--dtype",), ("--kv-cache-dtype",),
        ("--speculative-config", "-sc"), ("--nnodes",), ("--node-rank",),
    ),
    "llamacpp": (
        ("--port",), ("--model", "-m"), ("--ctx-size", "-c"), ("--batch-size", "-b"), ("--ubatch-size", "-ub"),
        ("--parallel", "-np"), ("--gpu-layers", "--n-gpu-layers", "-ngl"), ("--threads", "-t"),
        ("--spec-draft-model", "--model-draft", "-md"), ("--spec-type",),
    ),
    "generic": (),
}  # fmt: skip
"""Names of one flag each; several flags that add up (`--lora-paths`, `--allowed-origins`) are not here."""

_WORDS = frozenset({
    "--host", "--model-path", "--model", "-m", "--quantization", "-q", "--dtype", "--speculative-algorithm",
    "--attention-backend", "--speculative-draft-model-path", "--speculative-draft-model", "--kv-cache-dtype",
    "--speculative-config", "-sc",
    "--spec-draft-model", "--model-draft", "-md", "--spec-type", "--gpu-layers", "--n-gpu-layers", "-ngl",
    "--max-model-len",
})  # fmt: skip
NUMBERS: dict[str, frozenset[str]] = {
    engine: frozenset(name for names in flags for name in names if name not in _WORDS)
    for engine, flags in SINGLE.items()
}
"""Those of them whose value is a number and nothing else (`--max-model-len auto`, `-ngl all` are none)."""
