"""The codes of `vigil check`, from the file that defines them."""

from generators.markdown import code, prose, table
from vigil.preflight.finding import kinds


def parts() -> dict[str, dict[str, str]]:
    """Return the made parts of the page."""
    rows = [[code(one.code), prose(one.title), prose(one.because), code(one.kind)] for one in kinds().values()]
    return {"check.md": {"findings": table(["code", "what is wrong", "why it matters", "kind"], rows)}}
