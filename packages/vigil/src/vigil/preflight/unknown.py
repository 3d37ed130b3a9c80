"""What is said of a flag that the engine does not have, or that fits more than one."""

from vigil.preflight.basis import Basis, Held
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.flag_history import told_of
from vigil.preflight.grammar import Grammar, Problem
from vigil.preflight.naming import ENGINES, Meant, meant, taken_by
from vigil.preflight.tables import table_of


def about_unknown(problem: Problem, held: Held) -> Finding:
    """Return what is said of a flag that the engine does not have."""
    basis, grammar = held.basis, held.grammar
    glued = grammar.flags.get(problem.name) if grammar.plain_c and problem.value is not None else None
    if glued is not None and problem.at is not None:
        return Finding(
            code="FLAG001",
            severity=Severity.FATAL,
            at=problem.at,
            text=f"{ENGINES[basis.engine]} takes no `=`: a flag and its value are two words",
            edits=(Edit(at=problem.at, drop=1, put=(problem.name, problem.value or "")),),
            seen=basis.seen,
        )
    text, newer = told_of(problem.name, basis)
    found = Meant() if newer else meant(problem.name, basis.engine, grammar.flags)
    severity = _severity(basis, problem.name)
    edits = edits_for(problem, found, grammar) if severity is Severity.FATAL else ()  # else it may be right as it is
    return Finding(
        code="FLAG001",
        severity=severity,
        at=problem.at,
        count=max(1, edits[0].drop) if edits else 1,
        text=text,
        advice=newer or _advice(found, problem, basis),
        edits=edits,
        seen=basis.seen,
    )


def about_ambiguous(problem: Problem, held: Held) -> Finding:
    """Return what is said of a short form that fits more than one flag. Another release may have only one that it fits."""
    basis, grammar = held.basis, held.grammar
    history = basis.history(problem.name)
    named = next((row.instead for row in reversed(history) if row.instead in grammar.flags), None)
    short = f"{problem.name} is short for more than one flag: {', '.join(problem.could[:6])}"
    return Finding(
        code="FLAG002",
        severity=Severity.FATAL if basis.exact else Severity.WARNING,
        at=problem.at,
        text=f"{short}. {told_of(problem.name, basis)[0]}" if history else short,
        advice=f"Use {named}: the engine named it itself." if named else "Write out the one that is meant.",
        edits=edits_for(problem, Meant(name=named, sure=True), grammar) if named and basis.exact else (),
        seen=basis.seen,
    )


def _severity(basis: Basis, name: str) -> Severity:
    return Severity.FATAL if basis.refuses(name) else Severity.WARNING


def _advice(found: Meant, problem: Problem, basis: Basis) -> str:
    if found.drop:
        return f"{found.why}. Leave it out."
    if found.name is not None:
        return f"{found.why}." if found.why else f"Use {found.name}."
    others = [one for one in found.others if one]
    why = f"{found.why}. " if found.why else ""
    elsewhere = [told for other, told in ENGINES.items() if other != basis.engine and taken_by(problem.name, other)]
    why += f"{problem.name} is a flag of {' and '.join(elsewhere)}. " if elsewhere and not why else ""
    return why + (f"It could be {', '.join(others)}." if others else "Leave it out, or look it up in --help.")


def edits_for(problem: Problem, found: Meant, grammar: Grammar) -> tuple[Edit, ...]:
    """Return the change that makes an unknown flag right, where that is certain."""
    if problem.at is None or not found.sure:
        return ()
    if found.drop:
        took = _words_elsewhere(problem.name) if problem.value is None else 0
        return (Edit(at=problem.at, drop=1 + took),) if took is not None and took <= len(problem.values) else ()
    if found.name is None:
        return ()
    spec = grammar.flags.get(found.name.partition(".")[0])
    takes = 0 if spec is not None and spec.nargs == "0" else 1
    if found.value is not None:
        given = 1 if problem.values and _words_elsewhere(problem.name) != 0 else 0
        return (Edit(at=problem.at, drop=1 + given, put=(found.name, found.value)),)
    if takes == 0:
        return (Edit(at=problem.at, drop=1, put=(found.name,)),)
    if problem.value is not None:
        put = (found.name, problem.value) if grammar.plain_c else (f"{found.name}={problem.value}",)
        return (Edit(at=problem.at, drop=1, put=put),)
    if not problem.values:
        return ()
    return (Edit(at=problem.at, drop=2, put=(found.name, problem.values[0])),)


def _words_elsewhere(name: str) -> int | None:
    """Return how many words a flag takes in an engine that has it, or None where that is not known."""
    for engine in ENGINES:
        table = table_of(engine)
        rows = table.named(name) if table is not None else ()
        if rows:
            return int(rows[-1].nargs) if rows[-1].nargs.isdigit() else None
    return None
