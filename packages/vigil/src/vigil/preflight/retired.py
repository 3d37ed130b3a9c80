"""What is said of a flag that the engine has given up: it still takes it for a while, or takes it only to refuse it."""

import re

from vigil.preflight.basis import Held
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.grammar import Problem
from vigil.preflight.naming import Meant, elsewhere
from vigil.preflight.seen_parser import FlagSpec
from vigil.preflight.unknown import edits_for


def about_dead(problem: Problem, held: Held) -> Finding:
    """Return what is said of a flag that is known only to be refused."""
    basis, grammar = held.basis, held.grammar
    spec = problem.spec or FlagSpec(names=(problem.name,))
    named = [one for one in re.findall(r"--[a-z0-9][a-z0-9-]+", spec.instead or "") if one in grammar.flags]
    found = elsewhere(problem.name, basis.engine, {name: grammar.flags[name] for name in named})
    name = found.name if found is not None else named[0] if len(named) == 1 else None
    whole = Problem(
        wrong=problem.wrong, name=problem.name, at=problem.at, values=(problem.value,) if problem.value else ()
    )
    return Finding(
        code="FLAG002",
        severity=Severity.FATAL if basis.exact else Severity.WARNING,
        at=problem.at,
        count=problem.count,
        text=f"{basis.title} knows {problem.name} only to refuse it: {spec.instead}",
        advice=f"Use {name}." if name else f"Use {' or '.join(named)}." if named else "",
        edits=edits_for(whole, Meant(name=name, sure=True), grammar) if name else (),
        seen=basis.seen,
    )


def about_retired(problem: Problem, held: Held) -> Finding:
    """Return what is said of a flag that still works, and will not for long."""
    basis = held.basis
    instead = problem.spec.instead if problem.spec is not None else ""
    return Finding(
        code="FLAG006",
        severity=Severity.NOTE,
        at=problem.at,
        text=f"{basis.title} still takes {problem.name}, and says that it will not for long",
        advice=f"It names in its place: {instead}" if instead else "",
        seen=basis.seen,
    )
