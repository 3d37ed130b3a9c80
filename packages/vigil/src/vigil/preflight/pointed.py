"""Make a finding about a flag: it points at the flag's words, or at none where the flag is not given."""

from vigil.preflight.command import Given
from vigil.preflight.finding import Edit, Finding, Severity


def pointed(  # noqa: PLR0913 - what a finding is made of
    given: Given | None,
    code: str,
    severity: Severity,
    text: str,
    advice: str,
    *,
    seen: str = "",
    edits: tuple[Edit, ...] = (),
) -> Finding:
    """Return a finding about a flag of the command."""
    at, count = (given.at, given.count) if given is not None else (None, 1)
    return Finding(code=code, severity=severity, text=text, advice=advice, at=at, count=count, seen=seen, edits=edits)


def with_value(given: Given, value: str, name: str | None = None) -> tuple[Edit, ...]:
    """Return the edit that gives a flag another value (and name), in the form in which it is written."""
    name = name or given.name
    joined = given.count == 1 and given.value is not None
    return (Edit(at=given.at, drop=given.count, put=(f"{name}={value}",) if joined else (name, value)),)
