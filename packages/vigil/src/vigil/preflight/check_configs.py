"""JSON that vLLM checks by a class: fields that the release's class does not have, and values that they do not take.

Written as one object (`--compilation-config '{...}'`) or field by field (`--compilation-config.mode 3`).
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from vigil.preflight import check_vllm_speculation
from vigil.preflight.basis import Held
from vigil.preflight.check_json import FLAGS, read_object
from vigil.preflight.command import Given
from vigil.preflight.config_tables import rows_of
from vigil.preflight.config_values import wanted
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.misspelt import meant_by
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.seen_parser import ConfigSpec, FieldSpec
from vigil.screen import plain

DEEPEST = 5
SHOWN = 12
SPECULATION = "SpeculativeConfig"


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is wrong. `trail`: the names that lead to it; `field` None: the class `owner` has none of that name.

    `right`: what its name should be, or its value, where that is plain.
    """

    trail: tuple[str, ...]
    owner: str
    spec: ConfigSpec
    value: Any
    field: FieldSpec | None = None
    right: str | None = None


def check_configs(held: Held) -> Iterator[Finding]:
    """Find fields and values that the engine refuses, or drops without a word."""
    for given in held.command.flags:
        name, *path = given.name.split(".")
        flag = held.grammar.flags.get(name if not name.startswith("--") else "--" + name[2:].replace("_", "-"))
        owner = flag.config if flag is not None and flag.config is not None else ""
        spec, told = held.basis.config(owner) if owner else None, _told(given, path)
        if spec is None:
            continue
        if told is None:
            yield from _no_object(held, given, owner, spec) if not path else ()
            continue
        for mistake in _mistakes(held, owner, spec, told, ()):
            if not (owner == SPECULATION and not path and _told_elsewhere(mistake, told)):
                yield from _found(held, given, path, mistake)


def _no_object(held: Held, given: Given, owner: str, spec: ConfigSpec) -> Iterator[Finding]:
    """Find what is no object, where the release takes nothing else; JSON that is broken is told of by itself."""
    value = given.value or ""
    if spec.free or not held.basis.exact or given.plain in FLAGS["vllm"] or value in {"", "None"}:
        return
    if "{" in value or "$" in value:
        return
    level = next((one for one in ("mode", "level") if one in spec.fields), None) if value.isdigit() else None
    right = json.dumps({level: int(value)}) if level is not None else None
    yield pointed(
        given,
        "FLAG002",
        Severity.FATAL,
        f"{given.name} takes an object in {held.basis.title}, not {plain(value, 60)}",
        f"{given.name} '{right}'" if right else f"give it the fields of {owner}, as '{{\"name\": value}}'",
        edits=with_value(given, right) if right else (),
        seen=f"{held.basis.seen}: {owner}",
    )


def _told(given: Given, path: list[str]) -> dict[str, Any] | None:
    """Return the object that a flag gives, None where it gives none that can be read."""
    if not path:
        return read_object(given.value)
    if any(not one.rstrip("+") for one in path):
        return None
    value: Any = given.value
    if path[-1].endswith("+"):
        value = None  # it is added to a list
    elif value is not None:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = given.value
    for one in reversed(path):
        value = {one.rstrip("+").replace("-", "_"): value}
    return value if isinstance(value, dict) else None


def _mistakes(
    held: Held, owner: str, spec: ConfigSpec, told: dict[str, Any], trail: tuple[str, ...]
) -> Iterator[Mistake]:
    for name, value in told.items():
        # vllm 0.32: create_speculative_config puts `_` for `-`
        field = spec.fields.get(name) or (spec.fields.get(name.replace("-", "_")) if owner == SPECULATION else None)
        inner = held.basis.config(field.config) if field is not None and field.config is not None else None
        if field is None:
            meant = meant_by(name, tuple(spec.fields))
            right = meant[0] if meant is not None and meant[0] not in told else None
            yield Mistake(trail=(*trail, name), owner=owner, spec=spec, value=value, right=right)
        elif inner is not None and field.config is not None and isinstance(value, dict) and len(trail) < DEEPEST:
            yield from _mistakes(held, field.config, inner, value, (*trail, name))
        elif wanted(value, field) is not None:
            words = [one for one in field.choices or () if isinstance(one, str)]
            meant = meant_by(value, words) if isinstance(value, str) else None
            right = meant[0] if meant is not None else None
            yield Mistake(trail=(*trail, name), owner=owner, spec=spec, value=value, field=field, right=right)


def _told_elsewhere(mistake: Mistake, told: dict[str, Any]) -> bool:
    """Tell whether the check of speculation says it, with what it knows of all releases."""
    name = mistake.trail[-1]
    if mistake.field is None:
        return check_vllm_speculation.misspelt(name, told) is not None
    return name == "method" and meant_by(str(mistake.value), check_vllm_speculation.METHODS) is not None


def _found(held: Held, given: Given, path: list[str], mistake: Mistake) -> Iterator[Finding]:
    basis, name = held.basis, mistake.trail[-1]
    if not basis.exact and not _in_all_releases(basis.engine, mistake):
        return
    where = f"{given.name}: {'.'.join(mistake.trail)}" if not path else given.name
    fatal = basis.exact and (mistake.spec.closed or mistake.field is not None)
    if mistake.field is not None:
        text = f"{plain(where, 120)} wants {wanted(mistake.value, mistake.field)}, not {_shown(mistake.value)}"
        advice = f"the nearest is {mistake.right}" if mistake.right else ""
    else:
        does = "refuses it" if mistake.spec.closed else "drops it without a word"
        text = f"{plain(where, 120)} is no field of {mistake.owner} in {basis.title}, which {does}"
        advice = f"{mistake.right} is like it" if mistake.right else _others(basis.engine, mistake)
    yield pointed(
        given,
        "FLAG002",
        Severity.FATAL if fatal else Severity.WARNING,
        text,
        advice,
        edits=_edits(given, path, mistake, name) if mistake.right else (),
        seen=f"{basis.seen}: {mistake.owner}",
    )


def _in_all_releases(engine: str, mistake: Mistake) -> bool:
    """Tell whether no release that the table has would take it."""
    rows = [row for row in rows_of(engine) if row.owner == mistake.owner and row.name == mistake.trail[-1]]
    return not rows if mistake.field is None else all(wanted(mistake.value, row) is not None for row in rows)


def _others(engine: str, mistake: Mistake) -> str:
    """Return which releases have the field, else which fields there are."""
    rows = [row for row in rows_of(engine) if row.owner == mistake.owner and row.name == mistake.trail[-1]]
    if rows:
        return f"the table has it for {rows[0].first} to {rows[-1].last}: leave it out"
    names = list(mistake.spec.fields)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"leave it out; there are {', '.join(names[:SHOWN])}{more}"


def _shown(value: Any) -> str:
    return plain(json.dumps(value), 60)


def _edits(given: Given, path: list[str], mistake: Mistake, name: str) -> tuple[Edit, ...]:
    """Return the change that puts the right name, or the right value."""
    right, trail = str(mistake.right), mistake.trail
    if path and mistake.field is None:
        if len(trail) != len(path):
            return ()
        named = ".".join([given.name.split(".")[0], *path[:-1], right])
        return with_value(given, given.value, named) if given.value is not None else ()
    if path:
        return with_value(given, right) if len(trail) == len(path) else ()
    told = read_object(given.value) or {}
    holder = told
    for one in trail[:-1]:
        holder = holder[one]
    renamed = {right if one == name and mistake.field is None else one: value for one, value in holder.items()}
    if mistake.field is not None:
        renamed[name] = right
    holder.clear()
    holder.update(renamed)
    return with_value(given, json.dumps(told))
