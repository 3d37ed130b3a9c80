"""Settings by their names, and whether one has the value that somebody wrote down."""

import json
import math
from typing import Any

from vigil.fact_parts import Arguments, Value

DRAFT = "speculative_config."
JSON_BEGINS = ("[", "{")


def settings_named(arguments: Arguments, name: str) -> dict[str, Value]:
    """Return the settings of that name: whole, else those whose last parts it is, the least nested ones.

    A draft model has a configuration of its own: its settings count where there are no others, or its own were asked for.
    """
    plain = plain_name(name)
    known = {key: plain_name(key) for key in arguments.values}
    found = [key for key, one in known.items() if one == plain]
    found = found or [key for key, one in known.items() if one.endswith(f".{plain}")]
    own = [key for key in found if not known[key].startswith(DRAFT)]
    depth = min((known[key].count(".") for key in own or found), default=0)
    return {key: arguments.values[key] for key in own or found if known[key].count(".") == depth}


def plain_name(name: str) -> str:
    """Return a flag's or a setting's name as they are compared: `--max-model-len` is `max_model_len`."""
    return name.lstrip("-").replace("-", "_").lower()


def same_value(asked: str, value: Value) -> bool:
    """Tell whether a setting has the value that a text asks for: numbers, words and JSON as such, paths letter by letter."""
    if value is None or isinstance(value, bool):
        words = {None: {"none", "null"}, True: {"true", "1", "yes", "on"}, False: {"false", "0", "no", "off"}}
        return asked.strip().lower() in words[value]
    if isinstance(value, int | float):
        return _same_number(asked, value)
    if asked == value or value[:1] in JSON_BEGINS:
        return asked == value or _json(asked) == _json(value) is not None
    return "/" not in value and asked.removeprefix("torch.").lower() == value.removeprefix("torch.").lower()


def _same_number(asked: str, value: float) -> bool:
    try:
        whole = int(asked)
    except ValueError:
        pass
    else:  # a seed has more digits than a float
        return whole == value
    try:
        return math.isclose(float(asked), value, rel_tol=1e-9)
    except (ValueError, OverflowError):
        return False


def parts_of(text: str) -> dict[str, str] | None:
    """Return the parts of a value that is a JSON object, by name, as they would be asked for alone; None for any other."""
    told = _json(text) if text.startswith("{") else None
    if not isinstance(told, dict) or not told:
        return None
    return {str(name): one if isinstance(one, str) else json.dumps(one) for name, one in told.items()}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def shown_value(value: Value) -> str:
    """Return a setting as it is shown."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
