"""Check of the flags: does the engine take them, with these values? Where it does not, what was meant."""

from collections.abc import Iterator

import msgspec

from vigil.preflight.basis import Held, basis_of
from vigil.preflight.check_configs import check_configs
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.flag_words import about_stray, about_switch
from vigil.preflight.grammar import Wrong, grammar_of, problems
from vigil.preflight.naming import ENGINES
from vigil.preflight.retired import about_dead, about_retired
from vigil.preflight.sight import Sight
from vigil.preflight.spoilt import as_meant, spoilt_words
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
    grammar = grammar_of(command.engine, basis.flags if basis else (), command.words, command.own)
    spoilt = tuple(spoilt_words(command, grammar.flags))
    yield from (one.finding for one in spoilt)
    if basis is None:
        return
    meant = msgspec.structs.replace(command, words=as_meant(command.words, spoilt))
    held = Held(basis=basis, grammar=grammar, command=meant)
    told = {one.at for one in spoilt if meant.words[one.at] == command.words[one.at]}
    for problem in problems(grammar, meant.words, meant.own, meant.end if meant.shell else None):
        if problem.at in told or (problem.at is not None and meant.end is not None and problem.at >= meant.end):
            continue  # spoilt, or a shell's words without a shell: each is said once
        yield _TELLERS.get(problem.wrong, about_value)(problem, held)
    yield from check_configs(held)


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
