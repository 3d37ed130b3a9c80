"""Read a model's config.json, whatever stands in it: numbers, architectures, and the longest context that it was made for."""

from collections.abc import Iterator, Mapping
from typing import Any

LARGEST = 1 << 40
Config = Mapping[str, Any]
# Where models of several parts keep that of the language model (SGLang 0.5.23: get_hf_text_config).
TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
# SGLang 0.5.23: CONTEXT_LENGTH_KEYS of utils/hf_transformers/common.py; the order is its own.
CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
# Their max_position_embeddings hold the factor already (vLLM 0.32: _get_and_verify_max_len).
SCALED_ALREADY = ("llama3", "su", "longrope", "deepseek_yarn", "deepseek_llama_scaling")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_experts_per_tok")


def text_part(config: Config) -> Config:
    """Return the part of the language model."""
    for _ in range(2):
        part = next((config[name] for name in TEXT_PARTS if isinstance(config.get(name), dict)), None)
        if part is None or integer(config, "num_attention_heads") is not None:
            break
        config = part
    return config


def integer(config: Config, *names: str) -> int | None:
    """Return the first of some values that is a number above nothing and of a size that makes sense, or None."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST:
            return value
    return None


def architectures(config: Config) -> tuple[str, ...]:
    """Return the names of the model's classes."""
    found = config.get("architectures")
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def integers(value: Any) -> tuple[int, ...] | None:
    """Return a list of numbers, None where it is none."""
    if not isinstance(value, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        return None
    return tuple(value) or None


def part(config: Config, name: str) -> Config:
    """Return a part of a config, empty where there is none."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def is_moe(config: Config) -> bool:
    """Tell whether it has experts: which of its sizes are split between GPUs is then another question."""
    return any(config.get(name) for name in EXPERTS)


def longest_context(config: Config) -> int | None:
    """Return the largest context that any release of an engine would take from this config without being overruled, or None.

    Engines differ in what they make of rope scaling (SGLang 0.5.23: get_context_length; vLLM 0.32: _get_and_verify_max_len); the
    largest of their answers is returned, so that no server is refused that one of them would start.
    """
    text = text_part(config)
    found = [value for name in CONTEXT_KEYS if (value := integer(text, name)) is not None]
    if not found:
        return None
    return int(max(found) * max(factors)) if (factors := list(_factors(text, max(found)))) else max(found)


def _factors(text: Config, longest: int) -> Iterator[float]:
    for name in ("rope_scaling", "rope_parameters"):
        scaling = part(text, name)
        for one in (scaling, *(value for value in scaling.values() if isinstance(value, dict))):
            factor, kind = one.get("factor"), one.get("rope_type") or one.get("type")
            if kind in SCALED_ALREADY or not isinstance(factor, int | float) or not 1 < factor < LARGEST:
                continue
            before = integer(one, "original_max_position_embeddings")
            yield max(1.0, before * factor / longest) if before is not None else float(factor)
