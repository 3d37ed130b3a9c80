"""What a command asks for, against what the server says is in force. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from vigil.changes.asked import flags_of
from vigil.engine_table import EngineTable
from vigil.engines import find
from vigil.fact_parts import Arguments, Value
from vigil.facts import Attested
from vigil.observer.redact import is_secret_name
from vigil.verdict.settings import plain_name, same_value, settings_named, shown_value

ALIASES: dict[str, dict[str, str]] = {
    "sglang": {
        "tp": "tp_size",
        "tensor_parallel_size": "tp_size",
        "dp": "dp_size",
        "data_parallel_size": "dp_size",
        "pp": "pp_size",
        "pipeline_parallel_size": "pp_size",
        "ep": "ep_size",
        "expert_parallel_size": "ep_size",
        "model": "model_path",
        "speculative_algo": "speculative_algorithm",
        "speculative_draft_model": "speculative_draft_model_path",
    },
    "vllm": {
        "model": "model_config.model",
        "tp": "tensor_parallel_size",
        "pp": "pipeline_parallel_size",
        "dp": "data_parallel_size",
        "sc": "speculative_config",
        "block_size": "cache_config.block_size",
    },
    "llamacpp": {
        "m": "model_path",
        "model": "model_path",
        "c": "default_generation_settings.n_ctx",
        "ctx_size": "default_generation_settings.n_ctx",
        "np": "total_slots",
        "parallel": "total_slots",
        "a": "model_alias",
        "alias": "model_alias",
    },
}
"""Flags whose settings have another name, by engine: SGLang 0.5.23, vLLM 0.32, llama-server of 2026."""
ABBREVIATING = ("sglang", "vllm")
NEGATIONS = ("no_", "disable_")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One flag. `state`: in force as asked for, changed, or not told by anybody. `setting`: by which name it is told."""

    flag: str
    asked: str
    in_force: str | None = None
    state: Literal["same", "changed", "not told"] = "not told"
    setting: str = ""
    source: str = ""


def table_of_arguments(words: Sequence[str], engine: EngineTable, seen: Attested) -> tuple[Row, ...]:
    """Return a row for every flag of the engine's own words."""
    found, _, own = find(words)
    own = own if found.name == engine.name else tuple(words)
    sources = [one for one in (*seen.arguments, *([seen.served] if seen.served else [])) if one.values]
    rows = []
    for flag, asked in _asked(own, engine):
        rows.append(_row(flag, asked, engine, sources))
    return tuple(rows)


def _asked(own: Sequence[str], engine: EngineTable) -> Iterator[tuple[str, str]]:
    """Yield flags and values; the parts of a JSON value for themselves, since the server keeps them so."""
    flags = flags_of(tuple(own))
    first = flags.pop("", [])
    if engine.model_position and first:
        yield "model", first[0]
    for flag, values in flags.items():
        text = " ".join(values)
        parts = _object(text) if text.startswith("{") else None
        if parts is None:
            yield flag, text
        else:
            yield from ((f"{flag}.{name}", shown_value(value)) for name, value in parts.items())


def _object(text: str) -> dict[str, Value] | None:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    return {str(name): one if isinstance(one, str | int | float) else json.dumps(one) for name, one in told.items()}


def _row(flag: str, asked: str, engine: EngineTable, sources: Sequence[Arguments]) -> Row:
    if is_secret_name(flag):
        return Row(flag=flag, asked="***", setting="a secret: not compared")
    wanted, expected = asked, plain_name(flag)
    for one in sources:
        for name, value in _worst_first(_settings(one, flag, engine), wanted or "true"):
            return _compared(flag, wanted or "true", value, name, one.source)
        for negation in NEGATIONS:
            if not asked and expected.startswith(negation):
                for name, value in _settings(one, f"--{expected.removeprefix(negation)}", engine):
                    return _compared(flag, "false", value, name, one.source)
    return Row(flag=flag, asked=asked or "true")


def _worst_first(settings: list[tuple[str, Value]], asked: str) -> list[tuple[str, Value]]:
    """Put a setting that is not as asked for first: where several have the name, it is the one to look at."""
    return sorted(settings, key=lambda pair: same_value(asked, pair[1]))


def _compared(flag: str, asked: str, value: Value, name: str, source: str) -> Row:
    same = same_value(asked, value) or _same_list(asked, value)
    state: Literal["same", "changed"] = "same" if same else "changed"
    return Row(flag=flag, asked=asked, in_force=shown_value(value), state=state, setting=name, source=source)


def _same_list(asked: str, value: Value) -> bool:
    """Tell whether words after a flag are the list that a setting is: `1 2 4` and `[1, 2, 4]`."""
    if not isinstance(value, str) or not value.startswith("["):
        return False
    try:
        return [str(one) for one in json.loads(value)] == asked.split()
    except (ValueError, TypeError):
        return False


def _settings(one: Arguments, flag: str, engine: EngineTable) -> list[tuple[str, Value]]:
    """Return the setting of a flag: by its alias, its name, the last parts of its name, or the one name that it begins.

    Only Python's own parser takes the beginning of a name for it, and only of one with two dashes.
    """
    plain = plain_name(flag)
    aliased = ALIASES.get(engine.name, {}).get(plain, plain)
    head, dot, tail = plain.partition(".")
    if dot:
        aliased = f"{ALIASES.get(engine.name, {}).get(head, head)}.{tail}"
    found = list(settings_named(one, aliased).items())
    if found or not flag.startswith("--") or engine.name not in ABBREVIATING:
        return found
    begun = [pair for pair in one.values.items() if "." not in pair[0] and plain_name(pair[0]).startswith(aliased)]
    return begun if len(begun) == 1 else []
