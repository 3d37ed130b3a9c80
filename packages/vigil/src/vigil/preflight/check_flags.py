"""Check of the flags: does the engine take them, with these values? Where it does not, what was meant."""

from collections.abc import Iterator

from vigil.preflight.basis import Held, basis_of
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.flag_words import about_stray, about_switch
from vigil.preflight.grammar import Wrong, grammar_of, problems
from vigil.preflight.naming import ENGINES
from vigil.preflight.retired import about_dead, about_retired
from vigil.preflight.sight import Sight
from vigil.preflight.unknown import about_ambiguous, about_unknown
from vigil.preflight.values import about_value

_TELLERS = {
    Wrong.UNKNOWN: about_unknown,
    Wrong.AMBIGUOUS: about_ambiguous,
    Wrong.STRAY: about_stray,
    Wrong.TAKES_NONE: about_switch,
    Wrong.DEAD: about_dead,
    Wrong.RETIRED: about_retired,
}
# What no GPU and no network changes: the file cannot be read, or two flags have one name.
_SURELY = frozenset({"SyntaxError", "IndentationError", "TabError", "ArgumentError"})


def check_flags(command: Command, sight: Sight) -> Iterator[Finding]:
    """Find flags that the engine does not take, and values that they do not take."""
    yield from _broken(command, sight)
    basis = basis_of(command, sight)
    if basis is None:
        return
    grammar = grammar_of(command.engine, basis.flags, command.words, command.own)
    held = Held(basis=basis, grammar=grammar, command=command)
    for problem in problems(grammar, command.words, command.own, command.end if command.shell else None):
        if problem.at is not None and command.end is not None and problem.at >= command.end:
            continue  # a shell's words without a shell: `check_values` says so once
        yield _TELLERS.get(problem.wrong, about_value)(problem, held)


def version_of(command: Command, sight: Sight) -> str | None:
    """Return the version of the engine that the flags were held against; "(table)" where no install answered."""
    basis = basis_of(command, sight)
    if basis is None:
        return sight.parser.version if sight.parser is not None else None
    return f"{basis.release} (table)" if basis.seen.startswith("the table") else basis.release


def _broken(command: Command, sight: Sight) -> Iterator[Finding]:
    broken = sight.parser.broken if sight.parser is not None else None
    if broken is None:
        return
    sure = broken.kind in _SURELY or broken.edited
    where = f"{broken.file}, line {broken.line}: " if broken.file and broken.line else ""
    edited = (
        "The file is not what the install brought: somebody edited it. Mend the edit" if broken.edited else "Mend it"
    )
    advice = f"{edited}, or install {ENGINES.get(command.engine, command.engine)} again."
    unsure = "It was made here without a GPU and without the network, where the start may fare better."
    yield Finding(
        code="PARSE001",
        severity=Severity.FATAL if sure else Severity.WARNING,
        text=f"{where}{broken.text}",
        advice=advice if sure else unsure,
        seen=f"the installed parser, {sight.parser.interpreter if sight.parser is not None else None}",
    )
