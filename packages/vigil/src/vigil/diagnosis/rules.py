"""The rules: read from TOML, checked, and put into the order in which they are asked."""

import re
import tomllib
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from importlib import resources
from typing import Any

import msgspec

from vigil.diagnosis.patience import ALLOWANCE_S, Allowance, Patient, Searches, SlowRule

_NO_VERSION = re.compile(r"0\.0\.0|0\.1(?:\.0)?\.?dev")
"""What builds from a repository call themselves: it says nothing of their age."""


class AdviceFor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do with one engine, from version `since` on and before version `before`, where given."""

    engine: str
    advice: str
    since: str | None = None
    before: str | None = None

    def fits(self, engine: str | None, version: str | None) -> bool:
        """Whether this is the advice for that engine and version; with a version that is not known, none of a range."""
        if engine != self.engine:
            return False
        if self.since is None and self.before is None:
            return True
        if version is None or _NO_VERSION.match(version):
            return False
        number = version_key(version)
        return (self.since is None or number >= version_key(self.since)) and (
            self.before is None or number < version_key(self.before)
        )


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to see the failure.

    `text` stands in the line as it is, and `pattern` (on the line without its prefix) matches too. `engines`, `advice`,
    `advice_for` and `kind` replace the rule's own where given.

    Conditions, all of which must hold: `stage`, the attempt was in one of these when the line came; `after`, one of
    these texts stands in an earlier line, of which one matches `above`; `unless`, none of these stands in a line soon
    after; `then`, one of these does; `frame`, a pattern that a line of the traceback above matches. `weak`: the line
    says what failed, and another one near it may say why. It counts, too, `quiet` where its writer only warned,
    `relayed` in a relay's words, `lasting` in a server that came up all the same; `repeated` only where the start
    before ended so, too, and neither served. `back`: the line to point at is the last one above that holds one of these texts.
    """

    text: str
    pattern: str | None = None
    engines: tuple[str, ...] = ()
    advice: str = ""
    advice_for: tuple[AdviceFor, ...] = ()
    stage: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    above: str | None = None
    frame: str | None = None
    weak: bool = False
    quiet: bool = False
    relayed: bool = False
    lasting: bool = False
    repeated: bool = False
    kind: str = ""
    back: tuple[str, ...] = ()

    @property
    def conditions(self) -> int:
        """How many conditions there are besides the text: what asks for more is asked first."""
        return sum(map(bool, (self.stage, self.after, self.above, self.frame, self.unless, self.then, self.pattern)))


class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A piece of a log for the tests and the docs.

    `source`: the log or issue that it stands in. The rest says how that life ended; `alive`: it did not, as far as is
    known.
    """

    text: str
    source: str
    engine: str | None = None
    code: int | None = 1
    signal: int | None = None
    oom_killed: bool = False
    alive: bool = False


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a code means and how it shows. `retry`: whether starting again could mend it.

    `generic` rules say that something failed without knowing what; a rule that knows goes before them; `kind_serving`
    is their kind where the attempt served already. `aftermath` rules know what a process prints when another one is
    gone: any other failure goes before them. `from_end` rules are also given by the way the process ended, without any
    line. Rules that are `seen` have no `when`: code
    finds what they mean in the lines of a server that runs.
    """

    code: str
    title: str
    kind: str
    engines: tuple[str, ...] = ()
    when: tuple[When, ...] = ()
    because: str
    advice: str
    advice_for: tuple[AdviceFor, ...] = ()
    retry: bool
    generic: bool = False
    kind_serving: str = ""
    aftermath: bool = False
    from_end: bool = False
    seen: bool = False
    match: tuple[Sample, ...] = ()
    near_miss: tuple[Sample, ...] = ()


class Needle(msgspec.Struct, frozen=True):
    """A rule's `when`, ready to search with. `level`: how much it knows; the lowest goes first.

    -1 a user's rule, 0 a known cause, 1 what may have another cause near it, 2 something failed, 3 another process did.
    """

    rule: Rule
    when: When
    pattern: Searches | None
    above: Searches | None
    frame: Searches | None
    engines: frozenset[str]
    level: int

    def suits(self, engine: str | None) -> bool:
        """Whether the rule is meant for `engine`; everything suits an unknown one."""
        return engine is None or not self.engines or engine in self.engines


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an attempt is, as rules need to know it, and the texts that show that it has come there."""

    name: str
    texts: tuple[str, ...]


class Stall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text behind which a start may wait for ever; `phase` or `kind` where they are not those of the phase before.

    `weak`: a parent's word that it waits, which says nothing where another stall stands before it.
    """

    text: str
    weak: bool = False
    phase: str = ""
    kind: str = ""
    pattern: str | None = None
    advice: str = ""


class Served(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What shows, after a failure or in its traceback, that the attempt served already, though no line before said so.

    `told`: texts of a parent that only a server which served prints; `loop`: a frame of the loop that answers requests;
    `first`: one of a loop that answers the server's own first request, too, which counts where no stage is known.
    `request`: a frame of what works on a single request; `all`: one of whoever starts, or works for all requests.
    """

    told: tuple[str, ...]
    loop: str
    first: str
    request: str
    all: str


class Reading(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts that say how a log must be read; see `reading.toml`."""

    relays: tuple[str, ...]
    harmless: tuple[str, ...]
    harmless_heads: tuple[str, ...]
    stopped: tuple[str, ...]
    gone: tuple[str, ...]
    versions: tuple[str, ...]
    waiting: dict[str, str]
    stage: tuple[Stage, ...]
    served: Served
    stall: tuple[Stall, ...]


class RuleSet:
    """Rules in the order in which they are asked, users' first. Invariant: a code stands once."""

    def __init__(self, rules: Iterable[Rule], users: Iterable[Rule] = ()) -> None:
        users = tuple(users)
        self.by_code = {rule.code: rule for rule in (*users, *rules)}
        self._allowances = {rule.code: Allowance() for rule in users}
        needles = [self._needle(rule, place) for rule in self.by_code.values() for place in range(len(rule.when))]
        self.needles = tuple(sorted(needles, key=_claim))

    def begin(self) -> None:
        """Begin another attempt: users' rules have their time again (see `patience`)."""
        for allowance in self._allowances.values():
            allowance.left_s = ALLOWANCE_S

    def _needle(self, rule: Rule, place: int) -> Needle:
        when = rule.when[place]
        allowance = self._allowances.get(rule.code)

        def ready(field: str, pattern: str | None) -> Searches | None:
            if not pattern:
                return None
            if allowance is None:
                return re.compile(pattern)
            return Patient(pattern, SlowRule(rule.code, f"when[{place}].{field}"), allowance)

        return Needle(
            rule=rule,
            when=when,
            pattern=ready("pattern", when.pattern),
            above=ready("above", when.above),
            frame=ready("frame", when.frame),
            engines=frozenset(when.engines or rule.engines),
            level=_level(rule, when, users=allowance is not None),
        )

    @cached_property
    def texts(self) -> frozenset[str]:
        """All literals of these rules."""
        return frozenset(
            text
            for needle in self.needles
            for text in (
                needle.when.text,
                *needle.when.after,
                *needle.when.unless,
                *needle.when.then,
                *needle.when.back,
            )
        )


def without(rules: Iterable[Rule], slow: Iterable[SlowRule]) -> tuple[Rule, ...]:
    """Return the rules but for those that took too long."""
    codes = {one.code for one in slow}
    return tuple(rule for rule in rules if rule.code not in codes)


def _claim(needle: Needle) -> tuple[bool, int, int]:
    """Return the place in which a needle may claim a line: by what it knows; what knows nothing goes last."""
    return needle.rule.generic, needle.level, -needle.when.conditions


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version in a form that compares: `0.5.2` is below `0.5.10`, `b6428` is 6428."""
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version.partition("+")[0])[:4])


def check_rule(rule: Rule, wrong_with: Callable[[str], str] | None = None) -> str:
    """Return what is wrong with a rule, naming the field, or nothing. `wrong_with` tells it of a pattern; else `re` does."""
    wrong_with = wrong_with or _wrong_with
    for place, when in enumerate(rule.when):
        if not when.text:
            return f"when[{place}].text: it is empty"
        for name, pattern in (("pattern", when.pattern), ("above", when.above), ("frame", when.frame)):
            if wrong := wrong_with(pattern or ""):
                return f"when[{place}].{name}: {wrong}"
    return ""


def _wrong_with(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""


def _level(rule: Rule, when: When, *, users: bool) -> int:
    if rule.aftermath:
        return 3
    if rule.generic:
        return 2
    if when.weak:
        return 1
    return -1 if users else 0


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("vigil.diagnosis") / name).read_text("utf-8"))


def _rule(name: str) -> Rule:
    rule = msgspec.convert(_load(f"rules/{name}"), Rule)
    wrong = check_rule(rule)
    if wrong or name != f"{rule.code}.toml" or not rule.match or not rule.near_miss:
        raise ValueError(f"{name}: {wrong or 'it has its code for a name, and holds a match and a near_miss'}")
    return rule


# Read once, when a diagnosis first asks: that takes some 60 ms, and most commands never do. A rule that breaks the form is a
# fault of ours that any test shows.
@cache
def known_rules() -> dict[str, Rule]:
    """Return our own rules by code."""
    folder = resources.files("vigil.diagnosis") / "rules"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return {rule.code: rule for rule in map(_rule, names)}


@cache
def known_rule_set() -> RuleSet:
    """Return our own rules, ready to be asked."""
    return RuleSet(known_rules().values())


@cache
def how_to_read() -> Reading:
    """Return how logs are read, whatever the rule."""
    return msgspec.convert(_load("reading.toml"), Reading)
