"""Mistakes that the words alone show: dashes and quotes of a web page, a flag and its value in one word, words of a shell."""

import re
import shlex
from collections.abc import Iterator

import msgspec

from vigil.engines import registry
from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.single import NUMBERS, SINGLE
from vigil.screen import plain

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
_DASHED = re.compile(rf"(?P<dashes>[-{DASHES}]{{1,4}})(?P<name>[A-Za-z][\w-]*)(?P<value>=.*)?\Z", re.DOTALL)
_SWALLOWED = re.compile(r"--?[A-Za-z][\w.-]*[ \t]+\S")
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_SWITCH = re.compile(r"--(?:no-|enable-|disable-|skip-|trust-remote-code|enforce-eager|log-requests|use-|is-)")
_SHELLS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "&>", "2>"})


def check_words(command: Command) -> Iterator[Finding]:
    """Find words that are not what they were meant to be."""
    for at in range(command.own, len(command.words) if command.end is None else command.end):
        yield from _word(command, at)
    for given in command.flags:
        yield from _value(command, given)
    yield from _twice(command)
    yield from _shell(command)


def _word(command: Command, at: int) -> Iterator[Finding]:
    word, before = command.words[at], command.words[at - 1] if at > command.own else ""
    dashed = _DASHED.match(word)
    if dashed is not None and set(dashed["dashes"]) & set(DASHES):
        right = ("-" if len(dashed["name"]) == 1 else "--") + dashed["name"] + (dashed["value"] or "")
        text = f"{plain(word, 60)!r} begins with {_named(dashed['dashes'])}, which no parser takes for a flag"
        advice = f"type it as {plain(right, 80)}: it was copied from a page that prettifies dashes"
        severity = Severity.WARNING if _is_value(before) else Severity.FATAL
        yield _words(severity, at, 1, text, advice, (right,))
    elif _SWALLOWED.match(word) and not _is_value(before):
        text = f"{plain(word, 80)!r} is one word: the quotes around it keep the flag and its value together"
        yield _words(Severity.FATAL, at, 1, text, "write them as two words, without the quotes", _split(word))


def _is_value(before: str) -> bool:
    """Say whether what follows a word may be its value."""
    return before.startswith("-") and "=" not in before and _SWITCH.match(before) is None


def _words(severity: Severity, at: int, count: int, text: str, advice: str, put: tuple[str, ...]) -> Finding:  # noqa: PLR0913, PLR0917
    """Return a finding about words that are no flags; `put` in their place, where there is something."""
    edits = (Edit(at=at, drop=count, put=put),) if put else ()
    seen = "the words of the command"
    return Finding(
        code="FLAG001", severity=severity, text=text, advice=advice, at=at, count=count, edits=edits, seen=seen
    )


def _named(dashes: str) -> str:
    kinds = {
        "\u2013": "an en dash",
        "\u2014": "an em dash",
        "\u2212": "a minus sign",
        "\u2011": "a hyphen that does not break",
    }
    first = next(one for one in dashes if one in DASHES)
    return f"{kinds.get(first, 'a dash')} (U+{ord(first):04X})"


def _split(word: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(word[:4000]))
    except ValueError:
        return ()


def _value(command: Command, given: Given) -> Iterator[Finding]:
    value = given.value
    number, model = given.plain in NUMBERS[command.engine], given.name in registry.table(command.engine).model_flags
    if value is None:
        if number or model:
            yield _empty(given, f"{given.name} has no value: a variable that is not set leaves nothing behind it")
    elif not value.strip():
        if number or model:
            yield _empty(given, f"{given.name} has an empty value: a variable that is not set leaves that")
    elif value[0] in QUOTES or value[-1] in QUOTES:
        yield from _quoted(given, value, sure=number or model)
    elif not command.shell and _VARIABLE.fullmatch(value) and (number or model):
        yield Finding(
            code="FLAG002",
            severity=Severity.FATAL,
            text=f"{given.name} {plain(value, 60)}: no shell fills the variable in here, the engine would read these letters",
            advice="leave away the single quotes, or start it with sh -c",
            at=given.at,
            count=given.count,
            seen="the words of the command",
        )


def _empty(given: Given, text: str) -> Finding:
    return Finding(
        code="FLAG002",
        severity=Severity.FATAL,
        text=text,
        advice=f"give {given.name} a value, or leave it out; `set -u` in a script names such a variable",
        at=given.at,
        count=given.count,
        seen="the words of the command",
    )


def _quoted(given: Given, value: str, *, sure: bool) -> Iterator[Finding]:
    right = value.strip(QUOTES)
    if not right or value.lstrip(QUOTES)[:1] in {"{", "["}:
        return  # what is wrong with JSON is said there
    put = (f"{given.name}={right}",) if given.count == 1 else (given.name, right)
    yield Finding(
        code="FLAG002",
        severity=Severity.FATAL if sure else Severity.WARNING,
        text=f"{given.name} {plain(value, 80)}: these quotes are no quotes for a shell, and so part of the value",
        advice="use ' or \", or none: they were copied from a page that prettifies quotes",
        at=given.at,
        count=given.count,
        edits=(Edit(at=given.at, drop=given.count, put=put),),
        seen="the words of the command",
    )


def _twice(command: Command) -> Iterator[Finding]:
    """Find flags with two values: the last counts, in argparse as in llama-server."""
    for names in SINGLE[command.engine]:
        found = [one for one in command.all_of(*names) if one.value]
        if len({one.value for one in found}) > 1:
            first, last = found[0], found[-1]
            values = [plain(one.value or "", 60) for one in (first, last)]
            yield Finding(
                code="FLAG005",
                severity=Severity.WARNING,
                text=f"{first.name} {values[0]} and then {last.name} {values[1]}: the last counts",
                advice="leave one of them out",
                at=first.at,
                count=first.count,
                edits=(Edit(at=first.at, drop=first.count),),
                seen="argparse, llama.cpp's common/arg.cpp",
            )


def _shell(command: Command) -> Iterator[Finding]:
    """Find `&&`, `|`, `>` where no shell reads them: the engine gets them as arguments."""
    if command.shell:
        return
    words, last = command.words, len(command.words)
    at = next((at for at in range(command.own, last) if words[at] in _SHELLS and not _is_value(words[at - 1])), None)
    if at is not None:
        text = f"{plain(words[at], 10)!r} and what follows it go to the engine as arguments: no shell reads them here"
        advice = "leave them out (--log FILE keeps the output), or start it with sh -c '...'"
        found = _words(Severity.FATAL, at, last - at, text, advice, ())
        yield msgspec.structs.replace(found, edits=(Edit(at=at, drop=last - at),))
