"""An engine's table as Markdown, for the docs; a test compares it with what the docs say."""

from vigil.engine_table import EngineTable, Phase, Sign


def phase_table(table: EngineTable) -> str:
    """Return a Markdown table of the phases of `table`, the lines that show them, and how long they may be quiet."""
    rows = ["| phase | shown by a line with | versions | quiet for at most |", "| --- | --- | --- | --- |"]
    for sign in sorted(table.signs, key=lambda sign: list(Phase).index(sign.phase)):
        silent_s = table.silent_s.get(sign.phase)
        quiet = "" if silent_s is None else f"{silent_s:g} s"
        rows.append(f"| {_phase(table, sign)} | {_code(sign.text)} | {_plain(sign.since)} | {quiet} |")
    return "\n".join(rows) + "\n"


def _phase(table: EngineTable, sign: Sign) -> str:
    again = table.repeats_as.get(sign.phase) if sign.starts else None
    return f"`{sign.phase}`" if again is None else f"`{sign.phase}`, the second time `{again}`"


def _code(text: str) -> str:
    return f"`{_plain(text)}`"


def _plain(text: str) -> str:
    """Return `text` for a cell: a bar would end it."""
    return text.replace("|", "\\|")
