"""The command that is checked: its words, and its flags with the places where they stand."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A flag of the command. `name` as it is written, without `=value`; `value` None where none follows.

    `at` is the index of its word in `Command.words`, `count` how many words it takes, its value included.
    """

    name: str
    value: str | None
    at: int
    count: int

    @property
    def plain(self) -> str:
        """The name with `-` for `_`: `--tp_size` is `--tp-size`."""
        return plain_flag(self.name)


class Filed(msgspec.Struct, frozen=True, kw_only=True):
    """Words that stand in a file and not in the command: those from `start` on, `lines` the file's line of each.

    `at`: the word that names the file, among the words that were typed. `whole`: all that the file says was understood.
    """

    file: str
    at: int
    start: int
    lines: tuple[int, ...]
    whole: bool = False


class Command(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A server's command. `words` are all its words (a shell's text taken apart); those from `own` on are the engine's.

    `end`: where a shell would end the command (`&&`, `|`), None where it would not. `shell`: one reads the words before the
    engine does, and fills in what begins with `$`. `env` is what the start adds to the environment; `version` the release
    of the engine that it is meant for, where the user said so; `filed`: the words that a file adds. Invariant: `own` is at most
    `len(words)`, and at most `end`.
    """

    words: tuple[str, ...]
    own: int
    engine: str
    end: int | None = None
    shell: bool = False
    env: dict[str, str] = msgspec.field(default_factory=dict)
    version: str | None = None
    filed: Filed | None = None

    @cached_property
    def flags(self) -> tuple[Given, ...]:
        """All flags among the engine's words, in order. A word that may be a value is taken for one."""
        return tuple(_read(self.words[: self.end], self.own))

    def all_of(self, *names: str) -> list[Given]:
        """Return the flags of these names, `_` and `-` being the same, in order."""
        wanted = {plain_flag(name) for name in names}
        return [one for one in self.flags if one.plain in wanted]

    def last(self, *names: str) -> Given | None:
        """Return the last flag of these names: the one that counts."""
        return next(reversed(self.all_of(*names)), None)

    def number(self, *names: str) -> float | None:
        """Return the value of a flag as a number, or None where it is not given or is none."""
        found = self.last(*names)
        return float(found.value) if found is not None and found.value and _NUMBER.match(found.value) else None

    def text(self, *names: str) -> str | None:
        """Return the value of a flag, or None where it is not given."""
        found = self.last(*names)
        return found.value if found is not None else None


def plain_flag(name: str) -> str:
    """Return a long flag with `-` for `_`; a short one as it is."""
    return "--" + name[2:].replace("_", "-") if name.startswith("--") else name


def _read(words: Sequence[str], first: int) -> Iterator[Given]:
    index = first
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or _NUMBER.match(word) or word in {"-", "--"}:
            index += 1
            continue
        name, equals, value = word.partition("=")
        if equals:
            yield Given(name=name, value=value, at=index, count=1)
            index += 1
            continue
        following = words[index + 1] if index + 1 < len(words) else "-x"
        alone = following.startswith("-") and not _NUMBER.match(following)
        yield Given(name=name, value=None if alone else following, at=index, count=1 if alone else 2)
        index += 1 if alone else 2
