"""The tables of flags: which release of an engine takes which, and what came and went between two."""

import re
from functools import cache
from importlib import resources

import msgspec

from vigil.preflight.seen_parser import FlagSpec

_NUMBER = re.compile(r"\d+")


class Row(FlagSpec, frozen=True, kw_only=True):
    """A flag as it stayed from release `first` to release `last`."""

    first: str
    last: str

    def spec(self) -> FlagSpec:
        """Return it without its releases."""
        fields = {name: getattr(self, name) for name in FlagSpec.__struct_fields__}
        return FlagSpec(**fields)


class Table(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All that is known of one engine. `releases` from the oldest to the newest."""

    engine: str
    releases: tuple[str, ...]
    flags: tuple[Row, ...]

    def nearest(self, version: str | None) -> str:
        """Return the newest release that is not newer than `version`; the oldest where all are, the newest for None."""
        if version is None:
            return self.releases[-1]
        return next((one for one in reversed(self.releases) if order(one) <= order(version)), self.releases[0])

    def at(self, release: str) -> tuple[Row, ...]:
        """Return the rows of one release of the table."""
        place = order(release)
        return tuple(row for row in self.flags if order(row.first) <= place <= order(row.last))

    def named(self, name: str) -> tuple[Row, ...]:
        """Return the rows of all releases in which a flag of that name was taken, the oldest first."""
        return tuple(sorted((row for row in self.flags if name in row.names), key=lambda row: order(row.first)))

    def following(self, release: str) -> str | None:
        """Return the release after one of the table, or None for its newest."""
        index = self.releases.index(release) + 1
        return self.releases[index] if index < len(self.releases) else None

    def holds(self, version: str) -> bool:
        """Tell whether the table was made from this release itself, or from one that differs after it (`.post1`, `+cpu`)."""
        return order(version)[:3] in {order(one)[:3] for one in self.releases}


@cache
def order(version: str) -> tuple[int, ...]:
    """Return a version as numbers that compare; what follows a `+` does not count."""
    return tuple(int(one) for one in _NUMBER.findall(version.partition("+")[0])[:6])


@cache
def table_of(engine: str) -> Table | None:
    """Return the table of an engine, or None where there is none."""
    path = resources.files("vigil.preflight") / "flags" / f"{engine}.json"
    return msgspec.json.decode(path.read_bytes(), type=Table) if path.is_file() else None
