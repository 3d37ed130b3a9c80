"""The classes that an engine's flags take as JSON, by release: for where none is installed, and for what other releases have."""

from functools import cache
from importlib import resources

import msgspec

from vigil.preflight.seen_parser import ConfigSpec, FieldSpec
from vigil.preflight.tables import order


class Row(FieldSpec, frozen=True, kw_only=True):
    """A field as it stayed from release `first` to release `last`. Without a name: whether its class refuses others."""

    owner: str
    name: str | None = None
    closed: bool = False
    free: bool = False
    first: str
    last: str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """All fields of all releases."""

    engine: str
    releases: tuple[str, ...]
    fields: tuple[Row, ...]


@cache
def rows_of(engine: str) -> tuple[Row, ...]:
    """Return all rows of an engine, none where there is no table."""
    path = resources.files("vigil.preflight") / "flags" / f"{engine}_configs.json"
    return msgspec.json.decode(path.read_bytes(), type=Table).fields if path.is_file() else ()


@cache
def configs_at(engine: str, release: str) -> dict[str, ConfigSpec]:
    """Return the classes of one release of the table."""
    place, found = order(release), dict[str, ConfigSpec]()
    rows = [row for row in rows_of(engine) if order(row.first) <= place <= order(row.last)]
    for row in rows:
        if row.name is None:
            fields = {
                one.name: FieldSpec(type=one.type, choices=one.choices, config=one.config)
                for one in rows
                if one.owner == row.owner and one.name is not None
            }
            found[row.owner] = ConfigSpec(closed=row.closed, free=row.free, fields=fields)
    return found
