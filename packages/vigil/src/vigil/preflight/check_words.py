"""Mistakes that the words alone show: values that are missing or in quotes of a web page, a flag twice, words of a shell."""

import re
from collections.abc import Iterator

from vigil.engines import registry
from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.single import NUMBERS, SINGLE
from vigil.preflight.spoilt import takes_value
from vigil.preflight.values import FROM_A_VARIABLE
from vigil.screen import plain

QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_SHELLS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1", "&>", "2>"})


def check_words(command: Command) -> Iterator[Finding]:
    """Find words that are not what they were meant to be."""
    for given in command.flags:
        yield from _value(command, given)
    yield from _twice(command)
    yield from _shell(command)


def _value(command: Command, given: Given) -> Iterator[Finding]:
    value = given.value
    number, model = given.plain in NUMBERS[command.engine], given.name in registry.table(command.engine).model_flags
    if value is None:
        return  # the parser wants one, and says so
    if not value.strip():
        if model:
            yield _empty(given)
    elif value[0] in QUOTES or value[-1] in QUOTES:
        yield from _quoted(given, value, sure=number or model)
    elif not command.shell and _VARIABLE.fullmatch(value) and (number or model):
        yield pointed(
            given,
            "FLAG002",
            Severity.FATAL,
            f"{given.name} {plain(value, 60)}: no shell fills the variable in here, the engine would read these letters",
            "leave away the single quotes, or start it with sh -c",
            seen="the words of the command",
        )


def _empty(given: Given) -> Finding:
    return pointed(
        given,
        "FLAG002",
        Severity.FATAL,
        f"{given.name} has an empty value",
        f"give {given.name} a value, or leave it out: {FROM_A_VARIABLE}",
        seen="the words of the command",
    )


def _quoted(given: Given, value: str, *, sure: bool) -> Iterator[Finding]:
    right = value.strip(QUOTES)
    if not right or value.lstrip(QUOTES)[:1] in {"{", "["}:
        return  # what is wrong with JSON is said there
    yield pointed(
        given,
        "FLAG002",
        Severity.FATAL if sure else Severity.WARNING,
        f"{given.name} {plain(value, 80)}: these quotes are no quotes for a shell, and so part of the value",
        "use ' or \", or none: they were copied from a page that prettifies quotes",
        edits=with_value(given, right),
        seen="the words of the command",
    )


def _twice(command: Command) -> Iterator[Finding]:
    """Find flags with two values: the last counts, in argparse as in llama-server."""
    for names in SINGLE[command.engine]:
        found = [one for one in command.all_of(*names) if one.value]
        if len({one.value for one in found}) > 1:
            first, last = found[0], found[-1]
            values = [plain(one.value or "", 60) for one in (first, last)]
            yield pointed(
                first,
                "FLAG005",
                Severity.WARNING,
                f"{first.name} {values[0]} and then {last.name} {values[1]}: the last counts",
                "leave one of them out",
                edits=(Edit(at=first.at, drop=first.count),),
                seen="argparse, llama.cpp's common/arg.cpp",
            )


def _shell(command: Command) -> Iterator[Finding]:
    """Find `&&`, `|`, `>` where no shell reads them: the engine gets them as arguments."""
    if command.shell:
        return
    words, last = command.words, len(command.words)
    at = next(
        (at for at in range(command.own, last) if words[at] in _SHELLS and not takes_value(words[at - 1], {})), None
    )
    if at is not None:
        yield Finding(
            code="FLAG001",
            severity=Severity.FATAL,
            text=f"{plain(words[at], 10)!r} and what follows it go to the engine as arguments: no shell reads them here",
            advice="leave them out (--log FILE keeps the output), or start it with sh -c '...'",
            at=at,
            count=last - at,
            edits=(Edit(at=at, drop=last - at),),
            seen="the words of the command",
        )
