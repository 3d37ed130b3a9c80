"""The rules: read once from `rules/*.toml`, checked, and made ready for a search by literals."""

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to see the failure.

    `text` stands in the line as it is, and `pattern` (on the line without its prefix) matches too. `engines` and
    `advice` replace the rule's own where given.
    """

    text: str
    pattern: str | None = None
    engines: tuple[str, ...] = ()
    advice: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a log for the tests and the docs.

    `source`: the log or issue that it stands in. The rest says how that life ended.
    """

    text: str
    source: str
    engine: str | None = None
    code: int | None = 1
    signal: int | None = None
    oom_killed: bool = False


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a code means and how it shows. `retry`: whether starting again could mend it.

    `generic` rules say that something failed without knowing what; a rule that knows goes before them. `from_end`
    rules are also given by the way the process ended, without any line.
    """

    code: str
    title: str
    kind: str
    engines: tuple[str, ...] = ()
    when: tuple[When, ...]
    because: str
    advice: str
    retry: bool
    generic: bool = False
    from_end: bool = False
    match: tuple[Sample, ...]
    near_miss: tuple[Sample, ...]


class Needle(msgspec.Struct, frozen=True):
    """A rule's `when`, ready to search with."""

    rule: Rule
    when: When
    pattern: re.Pattern[str] | None
    engines: frozenset[str]

    def suits(self, engine: str | None) -> bool:
        """Whether the rule is meant for `engine`; everything suits an unknown one."""
        return engine is None or not self.engines or engine in self.engines


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts that say how a log must be read; see `reading.toml`."""

    relays: tuple[str, ...]
    harmless: tuple[str, ...]
    harmless_heads: tuple[str, ...]
    ready: tuple[str, ...]
    stopped: tuple[str, ...]


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("vigil.diagnosis") / name).read_text("utf-8"))


def _rule(name: str) -> Rule:
    rule = msgspec.convert(_load(f"rules/{name}"), Rule)
    if name != f"{rule.code}.toml" or not rule.match or not rule.near_miss:
        raise ValueError(f"{name}: a rule's file has its code for a name, and holds a match and a near_miss")
    return rule


def _all_rules() -> dict[str, Rule]:
    folder = resources.files("vigil.diagnosis") / "rules"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {rule.code: rule for rule in map(_rule, names)}


# Read at import: a rule that breaks the form is a fault of ours that any test shows; nothing is read while diagnosing.
RULES = _all_rules()
NEEDLES = tuple(
    Needle(rule, when, re.compile(when.pattern) if when.pattern else None, frozenset(when.engines or rule.engines))
    for rule in RULES.values()
    for when in rule.when
)
READING = msgspec.convert(_load("reading.toml"), Reading)


def load_rules(folder: Path) -> tuple[list[Rule], list[str]]:
    """Return the rules in a folder, and a line for each file that holds none."""
    rules, wrong = [], []
    for path in sorted(folder.glob("*.toml")):
        try:
            rules.append(msgspec.convert(tomllib.loads(path.read_text("utf-8")), Rule))
        except (OSError, ValueError, msgspec.ValidationError) as error:
            wrong.append(f"{path}: {error}")
    return rules, wrong
