"""What differs between the flags of two releases."""

import msgspec

from vigil.preflight.seen_parser import FlagSpec
from vigil.preflight.tables import Table

SHOWN = 12


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """From release `old` to release `new`: flags that came, went (with what took their place) and changed."""

    engine: str
    old: str
    new: str
    came: tuple[str, ...]
    went: dict[str, str]
    changed: dict[str, tuple[str, ...]]


def drift(table: Table, old: str, new: str) -> Drift:
    """Return what differs between two releases of a table."""
    before = {row.key: row.spec() for row in table.at(old)}
    after = {row.key: row.spec() for row in table.at(new)}
    known = {name for spec in after.values() for name in spec.names}
    changes = {key: tuple(_changes(spec, after[key])) for key, spec in before.items() if key in after}
    return Drift(
        engine=table.engine,
        old=old,
        new=new,
        came=tuple(key for key, spec in after.items() if key not in before and not _renamed(spec, before)),
        went={key: successor(table, key) or "" for key, spec in before.items() if not set(spec.names) & known},
        changed={key: found for key, found in changes.items() if found},
    )


def _renamed(spec: FlagSpec, before: dict[str, FlagSpec]) -> bool:
    """Tell whether one of its names was another flag's before: it goes by a new name, and the old one still works."""
    return any(set(spec.names) & set(one.names) for one in before.values())


def successor(table: Table, name: str) -> str | None:
    """Return what the engine itself said to use instead, in the last release that took the flag."""
    rows = table.named(name)
    return next((row.instead for row in reversed(rows) if row.instead), None)


def _changes(old: FlagSpec, new: FlagSpec) -> list[str]:
    found = []
    for what, gone, came in (("names", old.names, new.names), ("values", old.choices or (), new.choices or ())):
        if what == "values" and (old.choices is None or new.choices is None):
            continue
        lost, won = [one for one in gone if one not in came], [one for one in came if one not in gone]
        found += [f"{what} gone: {_list(lost)}"] if lost else []
        found += [f"{what} new: {_list(won)}"] if won else []
    if old.type != new.type:
        found.append(f"a value is {new.type or 'any word'}, was {old.type or 'any word'}")
    if old.nargs != new.nargs:
        found.append(f"takes {_words(new.nargs)}, took {_words(old.nargs)}")
    if old.default != new.default and "0" not in {old.nargs, new.nargs}:
        found.append(f"default {new.default}, was {old.default}")
    if old.required != new.required:
        found.append("must be given" if new.required else "need not be given")
    if new.instead is not None and old.instead is None:
        found.append(f"on its way out{f': {new.instead}' if new.instead else ''}")
    return found


def _list(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _words(nargs: str) -> str:
    told = {
        "0": "no value",
        "1": "a value",
        "?": "a value or none",
        "*": "any number of values",
        "+": "one value or more",
        "~": "what it takes",
    }
    return told.get(nargs, f"{nargs} values")
