"""What of a command line is worth keeping for later starts to be held against: its words, models, and the packages behind it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vigil.engine_table import EngineTable
from vigil.engines.commandline import assignments, flatten, values
from vigil.engines.registry import find


def worth_keeping(table: EngineTable, argv: Sequence[str], env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what the host is asked to keep of a start (see `launcher.snapshot`).

    The words go there as they are, secrets included, as the command itself does; what is kept of them has none.
    """
    words, (seen, _, own) = flatten(argv), find(argv)
    own = own if seen.name == table.name else words
    variables = {**(env or {}), **assignments(words)}
    return {
        "words": list(words),
        "models": models(table, own, variables),
        "packages": list(table.packages),
        "key_flags": list(table.key_flags),
    }


def models(table: EngineTable, own: Sequence[str], variables: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the models that a command line names: the served one as "model", others by their flags.

    `$NAME` in them is filled in on the host, which knows what it stands for.
    """
    found: list[dict[str, str]] = []
    given = [value for value in values(own, table.model_flags) if value]
    given = given[-1:] or [variables[name] for name in table.model_variables if variables.get(name)][:1]
    if not given and table.model_position and own and not own[0].startswith("-"):
        given = [own[0]]
    revision = [value for value in values(own, table.revision_flags) if value][-1:]
    found += [{"what": "model", "given": one} | ({"revision": revision[0]} if revision else {}) for one in given]
    for flag in table.draft_flags:
        found += [{"what": flag, "given": one} for one in values(own, (flag,)) if one]
    for flag in table.draft_configs:
        found += [{"what": flag, "given": one} for one in map(_model_in, values(own, (flag,))) if one]
    return found


def _model_in(config: str) -> str | None:
    """Return the `model` of a JSON object; None where there is none."""
    try:
        told = json.loads(config)
    except (ValueError, RecursionError):
        return None
    model = told.get("model") if isinstance(told, dict) else None
    return model if isinstance(model, str) else None
