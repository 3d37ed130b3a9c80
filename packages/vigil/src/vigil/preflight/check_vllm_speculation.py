"""vLLM's --speculative-config: its fields by themselves and against the parallel sizes.

Read in vllm 0.32 (config/speculative.py, config/vllm.py), and tried there with EngineArgs.create_engine_config().
"""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from vigil.preflight import check_json
from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.misspelt import meant_by
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.ranks import DATA, TENSOR, size
from vigil.screen import plain

SEEN = "vllm 0.32, config/speculative.py"
TOKENS = "num_speculative_tokens"
TARGETS_RANKS = "tensor_parallel_size"
FIELDS = (
    TOKENS, "method", "model", "draft_tensor_parallel_size", "max_model_len", "quantization", "revision", "prompt_lookup_max",
    "prompt_lookup_min", "num_speculative_tokens_per_batch_size", "disable_padded_drafter_batch", "speculative_token_tree",
    "parallel_drafting", "enforce_eager", "load_format", "code_revision", "draft_sample_method", "rejection_sample_method",
    "disable_by_batch_size", "suffix_decoding_max_tree_depth", "suffix_decoding_max_cached_requests",
    "suffix_decoding_max_spec_factor", "suffix_decoding_min_token_prob", "synthetic_acceptance_rates",
    "synthetic_acceptance_length", "use_heterogeneous_vocab", "moe_backend", "attention_backend", "acceptance_method",
)  # fmt: skip
METHODS = (
    "ngram",
    "ngram_gpu",
    "eagle",
    "eagle3",
    "draft_model",
    "medusa",
    "mlp_speculator",
    "suffix",
    "mtp",
    "dflash",
    "dspark",
)
NEWEST = (0, 33)
"""The newest version whose methods are all above, with those that end in _mtp."""
RANGES = "num_speculative_tokens_per_batch_size"
SWITCHES = (0, 24)
"""The first version that has ranges of k: 0.23 has none."""
_WANT_TOKENS = frozenset({"ngram", "ngram_gpu", "eagle", "eagle3", "draft_model"})
"""Methods whose draft never says how many tokens it proposes; the others may."""


def check_vllm_speculation(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find settings of speculation that vLLM refuses, or drops."""
    read = check_json.read(command, "--speculative-config", "-sc")
    if read is None or any(one.plain.startswith("--speculative-config.") for one in command.flags):
        return
    yield from _fields(read.given, read.value)
    yield from _ranges(read.given, read.value, version)
    yield from _method(read.given, read.value, known=version is not None and version <= NEWEST)
    yield from _tokens(read.given, read.value)
    yield from _lookup(read.given, read.value)
    yield from _parallel(command, read.given, read.value)


def _put(given: Given, value: dict[str, Any]) -> tuple[Edit, ...]:
    return with_value(given, json.dumps(value))


def _fields(given: Given, value: dict[str, Any]) -> Iterator[Finding]:
    """Find misspelt fields and methods, where one that is known is like them; others may be of another version."""
    for name in value:
        near = misspelt(name, value)
        if near is not None:
            right = {near if one == name else one: inner for one, inner in value.items()}
            text = f"{given.name} has a field {plain(name, 60)}, which vLLM does not know; {near} is like it"
            severity = Severity.FATAL if near == TOKENS else Severity.WARNING
            yield pointed(given, "FLAG002", severity, text, f"call it {near}", edits=_put(given, right), seen=SEEN)
    if TARGETS_RANKS in value:
        right = {"draft_tensor_parallel_size" if one == TARGETS_RANKS else one: inner for one, inner in value.items()}
        text = f"{given.name} takes no {TARGETS_RANKS}: the draft's is draft_tensor_parallel_size"
        yield pointed(given, "FLAG002", Severity.FATAL, text, "call it so", edits=_put(given, right), seen=SEEN)


def misspelt(name: str, value: dict[str, Any]) -> str | None:
    """Return the field that one is like, of an object that does not have it; None where it is a field itself, or like none."""
    near = get_close_matches(name.replace("-", "_"), FIELDS, 1, 0.85)
    return near[0] if name not in FIELDS and name != TARGETS_RANKS and near and near[0] not in value else None


def _ranges(given: Given, value: dict[str, Any], version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find ranges of k for a vLLM that cannot switch: `--speculate` asks for them, too."""
    if value.get(RANGES) and version is not None and version < SWITCHES:
        release = ".".join(map(str, version))
        text = f"vLLM {release} does not know {RANGES}: speculation is switched with the load from 0.24 on"
        advice = "a newer vLLM; or leave it (and --speculate) out"
        edits = _put(given, {name: inner for name, inner in value.items() if name != RANGES})
        yield pointed(
            given, "FLAG002", Severity.FATAL, text, advice, edits=edits, seen="vllm 0.23 and 0.24, vllm-metal#463"
        )


def _method(given: Given, value: dict[str, Any], *, known: bool) -> Iterator[Finding]:
    """Find a misspelt method; one that is only like another may be of a newer version than we know."""
    method = value.get("method")
    found = meant_by(method, METHODS) if isinstance(method, str) and not method.endswith("_mtp") else None
    if found is not None:
        text = f"{given.name}: vLLM knows no method {plain(str(method), 40)}; {found[0]} is like it"
        edits = _put(given, {**value, "method": found[0]})
        severity = Severity.FATAL if found[1] or known else Severity.WARNING
        yield pointed(given, "FLAG002", severity, text, f'"method": "{found[0]}"', edits=edits, seen=SEEN)


def _tokens(given: Given, value: dict[str, Any]) -> Iterator[Finding]:
    tokens, method, model = value.get(TOKENS), value.get("method"), value.get("model")
    if any(get_close_matches(name, (TOKENS,), 1, 0.85) for name in value if name != TOKENS) and tokens is None:
        return  # it is there, misspelt
    if tokens is None and method in _WANT_TOKENS:
        text = f"{given.name} with the method {method} does not say how many tokens to propose"
        edits = _put(given, {**value, TOKENS: 3})
        yield pointed(given, "FLAG004", Severity.FATAL, text, f'add "{TOKENS}": 3, for example', edits=edits, seen=SEEN)
    elif isinstance(tokens, int) and not isinstance(tokens, bool) and tokens < 1:
        text = f"{TOKENS} {tokens} must be at least 1; without speculation {given.name} stays out"
        edits = (Edit(at=given.at, drop=given.count),) if tokens == 0 else ()
        yield pointed(
            given,
            "FLAG003",
            Severity.FATAL,
            text,
            f"leave {given.name} out, or give a number from 1 on",
            edits=edits,
            seen=SEEN,
        )
    elif tokens is not None and method is None and model is None:
        text = f"{given.name} names neither a method nor a draft model"
        advice = 'add "model": "PATH" of a draft, or "method": "ngram"'
        yield pointed(given, "FLAG004", Severity.FATAL, text, advice, seen=SEEN)


def _lookup(given: Given, value: dict[str, Any]) -> Iterator[Finding]:
    least, most = value.get("prompt_lookup_min"), value.get("prompt_lookup_max")
    if (
        isinstance(least, int)
        and isinstance(most, int)
        and least > most
        and str(value.get("method", "")).startswith("ngram")
    ):
        edits = _put(given, {**value, "prompt_lookup_min": most, "prompt_lookup_max": least})
        text = f"prompt_lookup_min {least} is more than prompt_lookup_max {most}"
        yield pointed(given, "FLAG004", Severity.FATAL, text, "exchange them", edits=edits, seen=SEEN)


def _parallel(command: Command, given: Given, value: dict[str, Any]) -> Iterator[Finding]:
    tensor, draft = size(command, TENSOR), value.get("draft_tensor_parallel_size")
    if isinstance(draft, int) and draft not in {1, tensor}:
        text = f"draft_tensor_parallel_size {draft} must be 1 or that of the target, {tensor}"
        edits = _put(given, {**value, "draft_tensor_parallel_size": tensor})
        yield pointed(given, "FLAG004", Severity.FATAL, text, f"{tensor} or 1", edits=edits, seen=SEEN)
    if value.get(RANGES) and size(command, DATA) > 1:
        text = f"{RANGES} is dropped with --data-parallel-size {size(command, DATA)}"
        advice = f"{TOKENS} alone will be in force; run one server for each copy to keep the schedule"
        yield pointed(given, "SPEC004", Severity.WARNING, text, advice, seen="vllm 0.32, config/vllm.py")
