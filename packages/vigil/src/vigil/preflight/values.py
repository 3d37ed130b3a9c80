"""What is wrong with a flag's value: it is missing, none of the choices, or no number."""

import re
from difflib import get_close_matches

from vigil.preflight.basis import Basis, Held
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.grammar import Problem, Wrong
from vigil.preflight.releases import numbers_of
from vigil.preflight.seen_parser import FlagSpec

SHOWN = 14
CLOSE = 0.84
# What people call a dtype, and what both engines' --dtype calls it.
_SHORT = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32"}
_PAIRS = re.compile(r"\w+=\d+(?:,\w+=\d+)*\Z")
_PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)%\Z")
_COMMA = re.compile(r"0,\d{1,6}\Z")
FROM_A_VARIABLE = "a variable that is not set leaves that behind, and `set -u` in a script names it"
_KINDS = {
    "int": "a whole number",
    "stoi": "a whole number",
    "float": "a number",
    "json": "JSON",
    "size": "a whole number, or one like 16k",
}


def about_value(problem: Problem, held: Held) -> Finding:
    """Return what is wrong with the value of a flag that the engine knows."""
    basis, command = held.basis, held.command
    spec = problem.spec or FlagSpec(names=(problem.name,))
    edits: tuple[Edit, ...] = ()
    text, advice, sure = "", "", basis.agrees(spec.key)
    if problem.wrong is Wrong.MISSING:
        text, advice = f"{problem.name} must be given, and is not", f"Add {problem.name} and its value."
        sure = basis.exact
    elif problem.wrong is Wrong.NO_VALUE:
        text, advice = _no_value(problem, spec, command)
    elif problem.wrong is Wrong.NO_CHOICE:
        text, advice, edits = _no_choice(problem, spec, basis, command)
        sure = basis.refuses_value(spec.key, problem.value or "")
    else:
        text = f"{problem.name} wants {_KINDS.get(spec.type or '', spec.type)}, and {problem.value!r} is none"
        edits = _number(problem, spec, command)
        sure = sure and not _pairs_of_old(problem.value or "", spec, basis)
        advice = "" if (problem.value or "").strip() else f"Give it one, or leave it out: {FROM_A_VARIABLE}."
    return Finding(
        code="FLAG002",
        severity=Severity.FATAL if sure else Severity.WARNING,
        at=problem.at,
        count=problem.count,
        text=text,
        advice=advice,
        edits=edits,
        seen=basis.seen,
    )


def _pairs_of_old(value: str, spec: FlagSpec, basis: Basis) -> bool:
    """Tell whether vLLM before 0.10 may take it: `image=2` for JSON, with a word that this will go."""
    old = basis.engine == "vllm" and numbers_of(basis.release) < (0, 10)
    return old and spec.type == "json" and _PAIRS.match(value) is not None


def _no_value(problem: Problem, spec: FlagSpec, command: Command) -> tuple[str, str]:
    kind = f" ({_KINDS[spec.type]})" if spec.type in _KINDS else ""
    told = {"1": "a value", "+": "one value or more"}.get(spec.nargs, f"{spec.nargs} values")
    following = command.words[(problem.at or 0) + 1] if (problem.at or 0) + 1 < len(command.words) else ""
    behind = f": the next word, {following}, is a flag itself" if following.startswith("-") else ""
    advice = f"Give it one, or leave it out: {FROM_A_VARIABLE}."
    if _may_be_value(following):
        advice = f"Where {following} is the value, write {problem.name}={following}."
    return f"{problem.name} wants {told}{kind}, and none follows{behind}", advice


def _may_be_value(word: str) -> bool:
    """Tell whether a word with a dash looks like a value: one dash, and more than a letter behind it."""
    return word.startswith("-") and not word.startswith("--") and len(word) > 2  # noqa: PLR2004


def _no_choice(problem: Problem, spec: FlagSpec, basis: Basis, command: Command) -> tuple[str, str, tuple[Edit, ...]]:
    value, choices = problem.value or "", spec.choices or ()
    shown = ", ".join(choices[:SHOWN]) + (f" and {len(choices) - SHOWN} more" if len(choices) > SHOWN else "")
    near = _nearest(value, choices)
    text = f"{problem.name} takes no {value!r} in {basis.title}: {shown}"
    newer = next((row.first for row in basis.history(spec.key) if row.choices and value in row.choices), None)
    since = f"The table has it for {newer}. " if newer is not None else ""
    advice = since + (f"The nearest is {near}." if near is not None else "")
    return text, advice, _replaced(problem, command, near) if near is not None and newer is None else ()


def _nearest(value: str, choices: tuple[str, ...]) -> str | None:
    """Return the choice that was meant, where only one can be."""
    plain = {_plain(one): one for one in choices}
    if _plain(value) in plain:
        return plain[_plain(value)]
    if _SHORT.get(_plain(value)) in choices:
        return _SHORT[_plain(value)]
    found = get_close_matches(_plain(value), list(plain), 2, CLOSE)
    return plain[found[0]] if len(found) == 1 else None


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "")


def _number(problem: Problem, spec: FlagSpec, command: Command) -> tuple[Edit, ...]:
    """Return the change where a number is written as another: 8.0, 32,768, or as a fraction 90% and 0,9."""
    written = problem.value or ""
    if spec.type == "float" and (percent := _PERCENT.match(written)) is not None:
        return _replaced(problem, command, f"{float(percent.group(1)) / 100:g}")
    if spec.type == "float" and _COMMA.match(written):
        return _replaced(problem, command, written.replace(",", "."))
    value = written.replace(",", "").removesuffix(".0")
    whole = spec.type in {"int", "stoi", "size"} and value.isascii() and value.isdigit()
    sure = whole and (written == f"{value}.0" or written == f"{int(value):,}")
    return _replaced(problem, command, value) if sure else ()


def _replaced(problem: Problem, command: Command, value: str) -> tuple[Edit, ...]:
    """Return the change that puts another value in the place of the one that is wrong."""
    at = problem.at or 0
    for index in range(at, min(len(command.words), at + max(1, problem.count))):
        word = command.words[index]
        name, equals, given = word.partition("=")
        if index > at and word == problem.value:
            return (Edit(at=index, drop=1, put=(value,)),)
        if index == at and equals and given == problem.value:
            return (Edit(at=index, drop=1, put=(f"{name}={value}",)),)
    return ()
