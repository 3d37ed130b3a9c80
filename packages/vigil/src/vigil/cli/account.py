"""What a server runs, in lines for people: a table "asked for, in force", and what its processes say."""

from collections.abc import Sequence

from vigil.attest.arguments import Row
from vigil.attest.collect import Account
from vigil.cli.prose import wrapped
from vigil.screen import plain
from vigil.verdict.attested import warnings_of
from vigil.verdict.who import named

WIDEST_CELL = 44
SHOWN_FILES = 12
MARKS = {"same": " ", "changed": "!", "not told": "?"}


def text_of_account(account: Account) -> str:
    """Return the table and what is worth knowing beside it."""
    none = "  its command has no flags" if account.command_known else "  its command is not known from here"
    lines = _table(account.arguments) if account.arguments else [none]
    changed = sum(row.state == "changed" for row in account.arguments)
    silent = sum(row.state == "not told" for row in account.arguments)
    lines.append("")
    if changed:
        lines.append(f"  {changed} of {len(account.arguments)} are not in force as asked for (!)")
    if silent:
        lines.append(f"  {silent} are told by nobody (?)")
    lines += [
        f"  source: {plain(one, 200)}" for one in dict.fromkeys(row.source for row in account.arguments if row.source)
    ]
    seen = account.seen
    if account.note and seen.files:
        lines += wrapped(f"on a stack now, so loaded: {', '.join(one.path for one in seen.files[:SHOWN_FILES])}")
    lines.append(f"  answered: {named(one for one in seen.processes if not one.error)}")
    for one in seen.processes:
        if one.error:
            lines += wrapped(f"not asked: {named([one])}: {one.error}")
    if seen.served is not None and seen.served.error:
        lines.append(f"  its address does not tell: {plain(seen.served.error, 200)}")
    for text in (*warnings_of(seen), *([account.note] if account.note else [])):
        lines += wrapped(f"note: {text}")
    return "\n".join(lines)


def _table(rows: Sequence[Row]) -> list[str]:
    cells = [("", "flag", "asked for", "in force"), *map(_cells, rows)]
    widths = [max(len(cell[index]) for cell in cells) for index in range(4)]
    return [
        "  " + "  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells
    ]


def _cells(row: Row) -> tuple[str, str, str, str]:
    in_force = row.in_force if row.in_force is not None else row.setting or "not told"
    return (MARKS[row.state], *(plain(_cut(text), WIDEST_CELL) for text in (row.flag, row.asked, in_force)))  # type: ignore[return-value]


def _cut(text: str) -> str:
    """Cut a long value in its middle: paths differ at their ends."""
    half = (WIDEST_CELL - 1) // 2
    return text if len(text) <= WIDEST_CELL else f"{text[:half]}…{text[-half:]}"
