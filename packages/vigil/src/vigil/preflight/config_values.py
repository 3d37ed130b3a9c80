"""Whether a field of a class takes a value, as pydantic decides it: `"4"` is a number to it, and `"yes"` a truth."""

import re
from typing import Any

from vigil.preflight.seen_parser import FieldSpec

SHOWN = 14
_TRUTHS = frozenset({"true", "false", "1", "0", "on", "off", "yes", "no", "t", "f", "y", "n"})
# vllm 0.32 reads 1k and 2.5G in JSON, too: _expand_json_human_readable_numbers.
_NUMBER = re.compile(r"\s*[-+]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?\s*[kmgt]?i?b?\s*\Z", re.IGNORECASE)
_FILLED = re.compile(r"[$`]|\{\{")
_KINDS = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "str": "a text", "list": "a list", "dict": "an object",
}  # fmt: skip


def wanted(value: Any, field: FieldSpec) -> str | None:
    """Return in words what a field takes, where it does not take a value; None where it does, or may."""
    if value is None or (isinstance(value, str) and _FILLED.search(value)):
        return None
    if field.choices is not None:
        return None if _chosen(value, field) else f"one of {_listed(field.choices)}"
    kind = "dict" if field.config is not None else field.type
    return None if _fits(value, kind) else _KINDS[kind or ""]


def _chosen(value: Any, field: FieldSpec) -> bool:
    if field.type == "enum":
        return not isinstance(value, str) or value.upper() in (field.choices or ())
    return any(type(value) is type(one) and value == one for one in field.choices or ())


def _fits(value: Any, kind: str | None) -> bool:
    if kind in {"str", "list", "dict"}:
        return isinstance(value, {"str": str, "list": list, "dict": dict}[kind])
    if kind == "bool":
        return (
            value.lower() in _TRUTHS if isinstance(value, str) else isinstance(value, (int, float)) and value in {0, 1}
        )
    if kind in {"int", "float"}:
        if isinstance(value, str):
            return _NUMBER.match(value) is not None or (kind == "float" and value.lower() in {"inf", "-inf", "nan"})
        return isinstance(value, int) or (isinstance(value, float) and (kind == "float" or value.is_integer()))
    return True


def _listed(choices: tuple[Any, ...]) -> str:
    more = f" and {len(choices) - SHOWN} more" if len(choices) > SHOWN else ""
    return ", ".join(str(one) for one in choices[:SHOWN]) + more
