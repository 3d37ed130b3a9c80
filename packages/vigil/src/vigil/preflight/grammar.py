"""Read a command's words as the engine's own parser would: by argparse's rules, or by llama.cpp's. Pure.

argparse: a flag may be shortened while the short form fits one flag alone; a word with a space is never a flag; a negative number
is a value. vLLM's parser takes `_` for `-` and `--flag.key VALUE`. llama.cpp: no short forms, no `=`, the next word is the value.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from vigil.preflight.seen_parser import FlagSpec

_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")
_REDIRECTED = re.compile(r"(?:\d*|&)(?:>>?|<)(&?)(.*)\Z", re.DOTALL)
# vLLM: human_readable_int_or_auto in engine/arg_utils.py. SGLang: human_readable_int in srt/utils/common.py; it minds capitals.
_SIZE = re.compile(r"\d+(?:\.\d+)?[kKmMgGtT]|-1|auto", re.IGNORECASE)
_SIZE_OF_SGLANG = re.compile(r"\d+(?:\.\d+)?(?:[KMGT]i|[kMGT])")
_SHELL = re.compile(r"[$`]|\{\{|<[a-z_-]+>", re.IGNORECASE)  # what a shell, a template or a reader fills in
_BLANKS = "\\ \t\n"
ALWAYS = frozenset({"-h", "--help"})


class Wrong(StrEnum):
    """What can be wrong with a word."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    NO_VALUE = "no value"
    NO_CHOICE = "no choice"
    NO_TYPE = "no type"
    TAKES_NONE = "takes none"
    STRAY = "stray"
    MISSING = "missing"
    DEAD = "dead"
    RETIRED = "retired"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the parser would stumble over. `at`, `count` as in a finding; `could`: the flags that a short form fits."""

    wrong: Wrong
    name: str
    at: int | None = None
    count: int = 1
    value: str | None = None
    values: tuple[str, ...] = ()
    spec: FlagSpec | None = None
    could: tuple[str, ...] = ()


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine reads words. `positional`: how many words without a flag it takes; `leading`: only before all flags."""

    flags: Mapping[str, FlagSpec]
    positional: int = 0
    leading: bool = False
    plain_c: bool = False
    underscores: bool = False
    dotted: bool = False


def grammar_of(engine: str, specs: Sequence[FlagSpec], words: Sequence[str], own: int) -> Grammar:
    """Return how an engine reads its words; how it is called says whether a model may stand without a flag."""
    flags = {name: spec for spec in specs for name in spec.names}
    if engine == "llamacpp":
        return Grammar(flags=flags, plain_c=True, underscores=True)
    if engine == "vllm":
        return Grammar(flags=flags, positional=1, underscores=True, dotted=True)
    return Grammar(flags=flags, positional=1 if own and words[own - 1] == "serve" else 0, leading=True)


def problems(grammar: Grammar, words: Sequence[str], own: int, end: int | None = None) -> Iterator[Problem]:
    """Yield what the parser would stumble over, in the order of the words, up to `end`."""
    end = len(words) if end is None else end
    if grammar.plain_c:
        yield from _problems_in_c(grammar, words, own, end)
        return
    yield from _Walk(grammar, words, own, end).run()


class _Walk:
    """A walk over the words by argparse's rules. Invariant: words before `index` have been judged."""

    def __init__(self, grammar: Grammar, words: Sequence[str], own: int, end: int) -> None:
        self._grammar, self._words, self._end = grammar, words, end
        self._index = self._index_of_first = own
        self._strays: list[int] = []
        self._given: set[str] = set()

    def run(self) -> Iterator[Problem]:
        while self._index < self._end:
            word = self._words[self._index]
            if word == "--" or _SHELL.match(word):  # everything may follow
                self._given.add("--config")
                return
            skipped = _redirection(self._words, self._index)
            if skipped:
                self._index += skipped
            elif self._is_flag(self._index):
                yield from self._flag(word)
            elif word != word.strip(_BLANKS) and self._plain(word.strip(_BLANKS)) in self._grammar.flags:
                at = self._index
                self._index += 1
                self._take(_most(self._grammar.flags[self._plain(word.strip(_BLANKS))].nargs))
                yield Problem(wrong=Wrong.STRAY, name=word, at=at)
            else:
                self._strays.append(self._index)
                self._index += 1
        first = self._index_of_first
        spare = self._grammar.positional if not self._grammar.leading or self._strays[:1] == [first] else 0
        for at in self._strays[spare:]:
            if not _SHELL.search(self._words[at]):
                yield Problem(wrong=Wrong.STRAY, name=self._words[at], at=at)
        yield from self._missing()

    def _missing(self) -> Iterator[Problem]:
        if "--config" in self._given or self._strays or self._given & ALWAYS:
            return
        for spec in dict.fromkeys(self._grammar.flags.values()):
            if spec.required and spec.key not in self._given:
                yield Problem(wrong=Wrong.MISSING, name=spec.key, spec=spec)

    def _is_flag(self, index: int) -> bool:
        """Tell whether argparse takes a word for a flag."""
        word = self._words[index]
        if not word.startswith("-") or word == "-" or _redirection(self._words, index):
            return False
        if word in self._grammar.flags or self._named(word):
            return True
        return not _NEGATIVE.match(word) and " " not in word

    def _named(self, word: str) -> bool:
        return "=" in word and self._plain(word.partition("=")[0]) in self._grammar.flags

    def _plain(self, name: str) -> str:
        """Return a flag's name as the parser looks it up: vLLM's without what follows a dot, and with `-` for `_`."""
        if self._grammar.dotted and "." in name:
            name = name.partition(".")[0]
        if self._grammar.underscores and name.startswith("--"):
            name = "--" + name[2:].replace("_", "-")
        return name

    def _flag(self, word: str) -> Iterator[Problem]:
        written, equals, value = word.partition("=")
        at, name = self._index, self._plain(written)
        self._index += 1
        if self._grammar.dotted and name.startswith("-O") and name not in self._grammar.flags:
            return  # -O3 is vLLM's own short form
        found = [name] if name in self._grammar.flags else _short_for(name, self._grammar.flags)
        specs = list(dict.fromkeys(self._grammar.flags[one] for one in found))
        if len(specs) == 1:
            self._given.add(specs[0].key)
            if self._grammar.dotted and "." in written:
                self._take(0 if equals else 1)
            else:
                yield from self._values(at, written, specs[0], [value] if equals else None)
        elif specs or (written not in ALWAYS and not _glued(written, self._grammar.flags)):
            wrong = Wrong.AMBIGUOUS if specs else Wrong.UNKNOWN
            values = () if equals else tuple(self._take(len(self._words)))
            yield self._told(wrong, at, written, value if equals else None, None, values=values, could=tuple(found))

    def _values(self, at: int, written: str, spec: FlagSpec, glued: list[str] | None) -> Iterator[Problem]:
        if glued is not None and spec.nargs == "0":
            yield self._told(Wrong.TAKES_NONE, at, written, glued[0], spec)
            return
        values = glued if glued is not None else self._take(_most(spec.nargs))
        if glued is None and len(values) < _least(spec.nargs):
            yield self._told(Wrong.NO_VALUE, at, written, None, spec)
            return
        if spec.dead or spec.instead is not None:
            yield self._told(
                Wrong.DEAD if spec.dead else Wrong.RETIRED, at, written, values[0] if values else None, spec
            )
        for value in [] if spec.dead else values:
            wrong = judge(value, spec, free=self._grammar.dotted)
            if wrong is not None:
                yield self._told(wrong, at, written, value, spec)

    def _told(self, wrong: Wrong, at: int, name: str, value: str | None, spec: FlagSpec | None, **more: Any) -> Problem:
        return Problem(wrong=wrong, name=name, at=at, count=self._index - at, value=value, spec=spec, **more)

    def _take(self, most: int) -> list[str]:
        """Take up to `most` words that are no flags."""
        taken: list[str] = []
        while len(taken) < most and self._index < self._end and self._words[self._index] != "--":
            if self._is_flag(self._index) or _redirection(self._words, self._index):
                break
            taken.append(self._words[self._index])
            self._index += 1
        return taken

    def _take_all(self) -> tuple[str, ...]:
        """Take the words that may belong to a flag that is not known, but for a model's name at the end."""
        return tuple(self._take(len(self._words)))


def _problems_in_c(grammar: Grammar, words: Sequence[str], own: int, end: int) -> Iterator[Problem]:
    index = own
    while index < end:
        word = words[index]
        skipped = _redirection(words, index)
        if skipped:
            index += skipped
            continue
        if _SHELL.match(word):
            return
        name = "--" + word[2:].replace("_", "-") if word.startswith("--") else word
        spec = grammar.flags.get(name)
        if spec is None:
            wrong = Wrong.UNKNOWN if word.startswith("-") else Wrong.STRAY
            count = 1
            while (
                word.startswith("-")
                and "=" not in word
                and index + count < end
                and not words[index + count].startswith("-")
            ):
                count += 1
            values = tuple(words[index + 1 : index + count])
            written, equals, value = word.partition("=")
            yield Problem(
                wrong=wrong, name=written, at=index, count=count, value=value if equals else None, values=values
            )
            index += count
            continue
        count = int(spec.nargs) if spec.nargs.isdigit() else 1
        values = tuple(words[index + 1 : min(end, index + 1 + count)])
        yield from _judged_in_c(word, spec, index, values, count)
        index += 1 + len(values)


def _judged_in_c(word: str, spec: FlagSpec, at: int, values: tuple[str, ...], count: int) -> Iterator[Problem]:
    if len(values) < count:
        yield Problem(wrong=Wrong.NO_VALUE, name=word, at=at, spec=spec)
        return
    whole = 1 + len(values)
    if spec.dead or spec.instead is not None:
        wrong = Wrong.DEAD if spec.dead else Wrong.RETIRED
        yield Problem(wrong=wrong, name=word, at=at, count=whole, spec=spec, value=values[0] if values else None)
    elif values and (wrong_value := judge(values[0], spec)) is not None:
        yield Problem(wrong=wrong_value, name=word, at=at, count=whole, value=values[0], spec=spec)


def judge(value: str, spec: FlagSpec, *, free: bool = False) -> Wrong | None:
    """Return what is wrong with a value, or None. `free`: `None` and the empty word stand for no value (vLLM)."""
    if _SHELL.search(value) or (free and value in {"None", ""}):
        return None
    if spec.choices is not None and value not in spec.choices:
        same = spec.type == "int" and _is_int(value) and str(int(value)) in spec.choices
        return None if same else Wrong.NO_CHOICE
    if spec.type == "size":
        size = _SIZE if free else _SIZE_OF_SGLANG
        return None if size.fullmatch(value.strip()) or _is_int(value) else Wrong.NO_TYPE
    return None if _fits(value, spec.type) else Wrong.NO_TYPE


def _fits(value: str, kind: str | None) -> bool:
    match kind:
        case "int":
            return _is_int(value)
        case "stoi":
            return re.match(r"\s*[+-]?\d", value) is not None
        case "float":
            return _is_float(value)
        case "json":
            return _is_json(value)
        case _:
            return True


def _is_int(value: str) -> bool:
    try:
        int(value)
    except ValueError:
        return False
    return True


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _short_for(name: str, flags: Mapping[str, FlagSpec]) -> list[str]:
    """Return the flags that a word is the beginning of, as argparse finds them."""
    return [one for one in flags if one.startswith(name)] if len(name) > 1 and name != "--" else []


def _glued(name: str, flags: Mapping[str, FlagSpec]) -> bool:
    """Tell whether a word is a short flag with its value glued on: `-q8`."""
    return not name.startswith("--") and name[:2] in flags


def _least(nargs: str) -> int:
    return int(nargs) if nargs.isdigit() else 1 if nargs == "+" else 0


def _most(nargs: str) -> int:
    return int(nargs) if nargs.isdigit() else 1 if nargs == "?" else 1 << 30


def _redirection(words: Sequence[str], index: int) -> int:
    """Return how many words a shell's redirection takes here: 0 where there is none."""
    found = _REDIRECTED.match(words[index])
    return 0 if found is None else 1 if found.group(2) or found.group(1) else 2
