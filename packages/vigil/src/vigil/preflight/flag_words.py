"""What is said of words that belong to no flag, and of a value given to a switch."""

from vigil.preflight.basis import Basis, Held
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.grammar import Grammar, Problem

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


def about_stray(problem: Problem, held: Held) -> Finding:
    """Return what is said of a word that belongs to no flag."""
    basis, grammar = held.basis, held.grammar
    at = problem.at or 0
    if not problem.name.strip("\\ \t\n"):
        text = "a word of blanks: a backslash with a blank behind it, or an empty variable"
        edits = (Edit(at=at, drop=1),)
        return Finding(code="FLAG001", severity=Severity.FATAL, at=at, text=text, edits=edits, seen=basis.seen)
    switch = _switch_before(at, grammar, held.command)
    if switch is not None and problem.name.lower() in _TRUE | _FALSE:
        edit = Edit(at=at, drop=1) if problem.name.lower() in _TRUE else Edit(at=at - 1, drop=2)
        text = f"{switch} takes no value: to give it is to turn it on"
        return Finding(code="FLAG001", severity=Severity.FATAL, at=at, text=text, edits=(edit,), seen=basis.seen)
    glued = problem.name.strip("\\ \t\n")
    if glued.startswith("-") and glued.partition("=")[0] in grammar.flags:
        text = f"a blank stands before {glued}, so that it is no flag: a backslash with a blank behind it puts it there"
        edits = (Edit(at=at, drop=1, put=(glued,)),)
        return Finding(code="FLAG001", severity=Severity.FATAL, at=at, text=text, edits=edits, seen=basis.seen)
    more = "more " if grammar.positional else ""
    text = f"{problem.name} belongs to no flag, and {basis.title} takes no {more}words without one"
    advice = "Give it to its flag, or quote it together with the word before it."
    return Finding(code="FLAG001", severity=_sure(basis), at=at, text=text, advice=advice, seen=basis.seen)


def _sure(basis: Basis) -> Severity:
    """Return how bad a word too many is: a table of another release may have the flag before it wrong."""
    return Severity.FATAL if basis.exact else Severity.WARNING


def _switch_before(at: int, grammar: Grammar, command: Command) -> str | None:
    before = command.words[at - 1] if at > command.own else ""
    spec = grammar.flags.get(before)
    return before if spec is not None and spec.nargs == "0" else None


def about_switch(problem: Problem, held: Held) -> Finding:
    """Return what is said of a value that was given to a switch: `--trust-remote-code=true`."""
    basis, grammar = held.basis, held.grammar
    value = (problem.value or "").lower()
    put = (problem.name,) if value in _TRUE else ()
    off = f"--no-{problem.name[2:]}"
    if value in _FALSE and off in grammar.flags:
        put = (off,)
    edits = (Edit(at=problem.at or 0, drop=1, put=put),) if value in _TRUE | _FALSE else ()
    return Finding(
        code="FLAG002",
        severity=Severity.FATAL if basis.exact else Severity.WARNING,
        at=problem.at,
        text=f"{problem.name} takes no value: to give it is to turn it on",
        edits=edits,
        seen=basis.seen,
    )
