"""Which differences could explain which failure, and which variables are kept: from the tables that decide it."""

from generators.markdown import code, table
from vigil.changes.explains import EXPLAINS
from vigil.survey.variables import OPEN_ENDED, READ

SHOWN = 8


def parts() -> dict[str, dict[str, str]]:
    """Return the made parts of the page."""
    return {"what-changed.md": {"explains": explains(), "variables": variables()}}


def explains() -> str:
    """Return a row for each kind of failure."""
    rows = [[code(kind), ", ".join(map(code, order[:SHOWN])) + _more(order)] for kind, order in EXPLAINS.items()]
    return table(["kind, or code", "explained by, most likely first"], rows)


def _more(order: tuple[str, ...]) -> str:
    left = len(order) - SHOWN
    return f", {left} more" if left > 0 else ""


def variables() -> str:
    """Return the names in a paragraph; `*` stands for the rest of a name."""
    return ", ".join(code(f"{one}*" if one.endswith("_") or one in OPEN_ENDED else one) for one in READ)
