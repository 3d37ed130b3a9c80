"""What changed between two starts, in lines for people."""

import textwrap
from collections.abc import Sequence

from vigil.changes import GIVEN, Change
from vigil.cli.options import leading_to
from vigil.cli.prose import WIDEST
from vigil.screen import ago, plain
from vigil.verdict import Verdict

SHOWN = 6
LONGEST_SIDE = 60


def block_of(verdict: Verdict, width: int = WIDEST) -> list[str]:
    """Return the differences of a failed verdict from the last good start, most explaining first; nothing where there is none."""
    if verdict.changes_since_s is None:
        return []
    when = ago(verdict.changes_since_s).removesuffix(" ago")
    if not verdict.changes:
        return ["", f"  nothing that vigil keeps has changed since the last good start ({when} before this one)"]
    lines = ["", f"  changed since the last good start ({when} before this one):"]
    for one in verdict.changes[:SHOWN]:
        lines += line_of(one, width)
    left = len(verdict.changes) - SHOWN
    if left > 0:
        lines.append(f"    and {left} more: vigil diff {verdict.name}{leading_to(verdict.host)}")
    return lines


def line_of(change: Change, width: int = WIDEST, side: int = LONGEST_SIDE) -> list[str]:
    """Return one difference; `>` marks what could explain the cause."""
    before, after = (None if one is None else _cut(plain(one), side) for one in (change.before, change.after))
    if before is None:
        said = "added" if after == GIVEN else f"added: {after}"
    elif after is None:
        said = "removed" if before == GIVEN else f"removed (was {before})"
    elif after == "changed":
        said = "changed (a secret: not shown)"
    else:
        said = f"{before} -> {after}"
    text = f"{plain(change.what, 200)}: {said}"
    mark = "  > " if change.explains else "    "
    return textwrap.wrap(text, width, initial_indent=mark, subsequent_indent=" " * 8, break_on_hyphens=False) or [mark]


def _cut(text: str, side: int) -> str:
    """Cut a long value in its middle: paths differ at their ends."""
    half = (side - 1) // 2
    return text if len(text) <= side else f"{text[:half]}…{text[-half:]}"


def whole(changes: Sequence[Change]) -> list[str]:
    """Return all differences, their values nearly whole."""
    return [line for one in changes for line in line_of(one, WIDEST, 300)]
