"""What was meant by a flag that the engine does not have: by its spelling, its history, its meaning elsewhere. Pure."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from importlib import resources

import msgspec

from vigil.preflight.seen_parser import FlagSpec
from vigil.preflight.tables import Table, table_of

ENGINES = {"sglang": "SGLang", "vllm": "vLLM", "llamacpp": "llama-server"}
CLOSE = 0.86
LIKE = 0.62
MOST = 3
_FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*(?:=[\w-]+)?\Z")
_NAMED = re.compile(r"--[a-z0-9][a-z0-9-]+")


class Meaning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one thing is called by different engines (`flags/meanings.toml`)."""

    what: str
    sglang: tuple[str, ...] = ()
    vllm: tuple[str, ...] = ()
    llamacpp: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    without: dict[str, str] = msgspec.field(default_factory=dict)
    differs: str = ""
    mind: str = ""

    def names(self, engine: str) -> tuple[str, ...]:
        """Return what an engine calls it."""
        return getattr(self, engine, ()) if engine in ENGINES else ()

    @property
    def all_names(self) -> set[str]:
        """What anybody calls it."""
        return {*self.sglang, *self.vllm, *self.llamacpp, *self.others}


class Meant(msgspec.Struct, frozen=True, kw_only=True):
    """What is proposed for a flag. `name` None: nothing; `value`: what comes with it in place of what was given.

    `sure`: it may be pasted. `drop`: nothing is needed. `why`: one sentence. `others`: more that it could be.
    """

    name: str | None = None
    value: str | None = None
    sure: bool = False
    drop: bool = False
    why: str = ""
    others: tuple[str, ...] = ()


@cache
def meanings() -> tuple[Meaning, ...]:
    """Return all meanings."""
    text = (resources.files("vigil.preflight") / "flags" / "meanings.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["meaning"], tuple[Meaning, ...])


def meant(name: str, engine: str, flags: Mapping[str, FlagSpec]) -> Meant:
    """Return what somebody meant by a flag that is not among `flags`."""
    for told in _ways(name, engine, flags):
        if told is not None:
            return told
    return Meant()


def _ways(name: str, engine: str, flags: Mapping[str, FlagSpec]) -> Iterator[Meant | None]:
    yield _spelt(name, flags)
    table = table_of(engine)
    yield _followed(name, table, flags) if table is not None else None
    yield elsewhere(name, engine, flags)
    yield _like(name, flags)


def _spelt(name: str, flags: Mapping[str, FlagSpec]) -> Meant | None:
    """Return what has the same letters: `_` for `-`, capitals, one `-` for two, another number of them."""
    plain = "--" + name.lstrip("-\u2013\u2014").replace("_", "-").lower()
    if plain in flags:
        marks = {"underscores": "_" in name, "capitals": name != name.lower()}
        what = next((word for word, there in marks.items() if there), "its dashes")
        return Meant(name=plain, sure=True, why=f"{plain} is how it is written here: the mistake is {what}")
    return None


def _followed(name: str, table: Table, flags: Mapping[str, FlagSpec]) -> Meant | None:
    """Return what the engine itself said to use instead, when it still took the flag."""
    rows = table.named(name)
    told = next((row.instead for row in reversed(rows) if row.instead), None)
    if told is None:
        return None
    base, equals, value = told.partition("=")
    if _FLAG.match(told) and base in flags:
        why = f"{ENGINES[table.engine]} {rows[-1].last} still took it and named {told} in its place"
        return Meant(name=base, value=value if equals else None, sure=True, why=why)
    named = tuple(one for one in _NAMED.findall(told) if one in flags)
    return Meant(why=f"{ENGINES[table.engine]} {rows[-1].last} said of it: {told}", others=named)


def elsewhere(name: str, engine: str, flags: Mapping[str, FlagSpec]) -> Meant | None:
    """Return what this engine calls what another one calls so; the same name of an earlier release of this one, too."""
    plain = _plain(name)
    for one in meanings():
        if plain not in one.all_names and name not in one.all_names:
            continue
        told = one.without.get(engine)
        if told is not None:
            return Meant(drop=True, sure=True, why=f"{_whose(name, engine, one)} for: {one.what}. Here {told}")
        names = tuple(here for here in one.names(engine) if here.partition(".")[0] in flags)
        if names:
            note = f" ({one.differs or one.mind})" if one.differs or one.mind else ""
            why = f"{_whose(name, engine, one)} for: {one.what}. Here it is {names[0]}{note}"
            return Meant(name=names[0], sure=not one.differs, why=why)
    return None


def _plain(name: str) -> str:
    return "--" + name[2:].replace("_", "-") if name.startswith("--") else name


def _whose(name: str, engine: str, meaning: Meaning) -> str:
    """Say whose flag it is."""
    others = [other for other in ENGINES if other != engine]
    owners = [ENGINES[one] for one in others if taken_by(name, one) or _plain(name) in meaning.names(one)]
    if _plain(name) in meaning.names(engine):
        return f"{name} is what other releases of {ENGINES[engine]} have"
    return f"{name} is a flag of {' and '.join(owners)}" if owners else f"{name} is another server's flag"


def taken_by(name: str, engine: str) -> bool:
    """Tell whether any release of an engine takes a flag of that name."""
    table = table_of(engine)
    return table is not None and bool(table.named(_plain(name)))


def _like(name: str, flags: Mapping[str, FlagSpec]) -> Meant | None:
    """Return the nearest by spelling."""
    scored = sorted(((likeness(name, one), one) for one in flags), reverse=True)
    best = [one for score, one in scored[:MOST] if score >= LIKE]
    if not best:
        return None
    first, second = scored[0][0], scored[1][0] if len(scored) > 1 else 0.0
    same = len(scored) > 1 and flags[scored[0][1]] is flags[scored[1][1]]
    swapped = [one for one in flags if sorted(one) == sorted(name)]  # --prot
    if len(swapped) == 1 and len(name) > 4:  # noqa: PLR2004 - two letters can be anything
        return Meant(name=swapped[0], sure=True, why=f"{swapped[0]} has the same letters")
    sure = first >= CLOSE and (same or first - second > 0.03)  # noqa: PLR2004 - two that are as near as that are a guess
    if sure and _turns_on(name) is not _turns_on(best[0]):
        return Meant(why=f"The nearest name, {best[0]}, says the opposite", others=tuple(best[1:]))
    return Meant(
        name=best[0] if sure else None,
        sure=sure,
        why=f"{best[0]} is the nearest name" if sure else "",
        others=tuple(best),
    )


def _turns_on(name: str) -> bool:
    """Tell whether a flag turns something on, not off: one letter or two can make the difference."""
    return not set(name.strip("-").split("-")) & {"no", "not", "disable", "skip", "without"}


def likeness(one: str, other: str) -> float:
    """Return how alike two flags are, 0 to 1: by their letters, and by their words in any order."""
    letters = SequenceMatcher(None, one, other, autojunk=False)
    if letters.real_quick_ratio() < LIKE / 2:
        return 0.0
    mine, theirs = set(one.strip("-").split("-")), set(other.strip("-").split("-"))
    if mine == theirs and len(mine) < 3:  # noqa: PLR2004 - min-p and p-min are two things
        return letters.ratio()
    words = 2 * len(mine & theirs) / (len(mine) + len(theirs))
    return max(letters.ratio(), words * 0.98)
