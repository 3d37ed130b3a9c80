"""Which architectures the engines' releases serve, and how they read an EAGLE-3 draft.

The tables are made by `docs/releases.py`, that of llama.cpp's builds by `bench/gguf_architectures.py`.
"""

import re
from functools import cache
from importlib import resources

import msgspec

_NUMBERS = re.compile(r"\d+")
Version = tuple[int, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's releases. Of each architecture the indexes of those that serve it, and whose class hands out hidden states."""

    releases: tuple[str, ...]
    serves: dict[str, tuple[int, ...]]
    aux: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    aux_unknown: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    draft_reads: tuple[tuple[str, ...], ...] = ()


@cache
def tables() -> dict[str, Table]:
    """Return the tables by engine."""
    folder = resources.files("vigil.preflight")
    found = msgspec.json.decode((folder / "architectures.json").read_bytes(), type=dict[str, Table])
    return {**found, "llamacpp": msgspec.json.decode((folder / "gguf_architectures.json").read_bytes(), type=Table)}


def numbers_of(version: str | None) -> Version:
    """Return a version's numbers, `()` where there is none: 0.5.10.post1 is (0, 5, 10)."""
    return tuple(int(one) for one in _NUMBERS.findall((version or "").split("+")[0].split("rc")[0])[:3])


def around(table: Table, version: str | None) -> tuple[int, ...]:
    """Return the indexes of the releases on both sides of a version, of one that is in the table its own; all where it has none.

    A version beyond the table has only its last: what came after that cannot be known.
    """
    wanted = numbers_of(version)
    if not wanted:
        return tuple(range(len(table.releases)))
    known = [numbers_of(one) for one in table.releases]
    if wanted in known:
        return (known.index(wanted),)
    before = [at for at, one in enumerate(known) if one < wanted]
    after = [at for at, one in enumerate(known) if one > wanted]
    return (*before[-1:], *after[:1])


def covers(engine: str, version: str | None) -> bool:
    """Tell whether the table can say no: a version between its first and its last release."""
    table, wanted = tables().get(engine), numbers_of(version)
    if table is None or not wanted:
        return False
    return numbers_of(table.releases[0]) <= wanted <= numbers_of(table.releases[-1])


def serves(engine: str, version: str | None, architecture: str) -> bool:
    """Tell whether a release, or one beside it, serves an architecture."""
    table = tables()[engine]
    return bool(set(around(table, version)) & set(table.serves.get(architecture, ())))


def hands_out(engine: str, version: str | None, architecture: str) -> bool | None:
    """Tell whether a release, or one beside it, hands out hidden states of an architecture; None where its text does not tell."""
    table, near = tables()[engine], set(around(tables()[engine], version))
    if near & set(table.aux.get(architecture, ())):
        return True
    known = near & set(table.serves.get(architecture, ()))
    return None if not known or near & set(table.aux_unknown.get(architecture, ())) else False


def span(engine: str, architecture: str) -> str:
    """Return in words which releases serve an architecture."""
    table = tables()[engine]
    found = table.serves.get(architecture, ())
    if not found:
        return f"no release from {table.releases[0]} to {table.releases[-1]} has it"
    first, last = table.releases[found[0]], table.releases[found[-1]]
    return f"it is in {first} to {last}" if found[0] else f"it is in releases up to {last}"


def draft_reads(engine: str, version: str | None) -> frozenset[str] | None:
    """Return what a release reads of an EAGLE-3 draft, None where the releases beside a version differ."""
    table = tables().get(engine)
    if table is None or not table.draft_reads:
        return None
    found = {frozenset(table.draft_reads[at]) for at in around(table, version)}
    return found.pop() if len(found) == 1 else None
