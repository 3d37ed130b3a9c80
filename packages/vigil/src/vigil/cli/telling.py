"""Tell what folders of results hold: figures, answers, and how the servers' settings differ."""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vigil.cli.charting import charts_of
from vigil.cli.figures import table_of
from vigil.cli.saying import say
from vigil.screen import plain, plain_json

if TYPE_CHECKING:
    from vigil.bench.report import Report

NARROWEST = 40


def tell(folders: Sequence[Path], *, json: bool, keep: bool = False) -> list["Report"]:
    """Print folders of results, for people or as JSON. `keep`: write the report and vLLM's shape beside the rows as well."""
    reports = [report_in(path) for path in folders]
    for one in reports if json else ():
        say(plain_json(msgspec.json.encode(one).decode()))
    if not json:
        say("\n\n".join(filter(None, [*map(text_of, reports), charts_of(reports)])))
    for path, one in zip(folders, reports, strict=True) if keep else ():
        save(path, one)  # what cannot be written, on a full disk, has been said
    return reports


def report_in(path: Path) -> "Report":
    """Return the report of a folder of results."""
    from vigil.bench.folder import read_meta, read_rows, read_servers
    from vigil.bench.report import report

    return report(read_meta(path), read_rows(path), read_servers(path))


def save(path: Path, one: "Report") -> None:
    """Write the report, and its rows in the shape that `vllm bench serve` writes."""
    from vigil.bench.folder import write

    write(path / "report.json", one)
    model = next((str(facts.get("target", {}).get("model")) for facts in one.servers.values()), "")
    for row in one.rows:
        if row.measured:
            name = f"serve-{row.arm}-{row.point.kind}{row.point.value:g}-{row.round + 1}.json"
            write(path / name, {**row.serve, "model_id": model, "tokenizer_id": model, "label": row.arm})


def text_of(one: "Report") -> str:
    """Return a report for people."""
    from vigil.bench.alike import differences
    from vigil.bench.origin import not_in_force, origin

    width = columns()
    parts = [table_of(one.figures, width)]
    parts += [_filled(plain(answer.text, 1000), width) for answer in one.answers]
    settings = {arm: facts.get("settings") or {} for arm, facts in one.servers.items()}
    differing = [f"the servers say that they differ in {text}" for text in differences(settings)]
    notes = [*one.meta.notes, *not_in_force(one), *differing, origin(one)]
    if notes:
        parts.append("\n".join(_filled(plain(note, 300), width) for note in notes))
    return "\n\n".join(parts)


def columns() -> int | None:
    """Return how wide the terminal is that we print to; None where it is none."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def _filled(text: str, width: int | None) -> str:
    """Return text with its lines broken between words where a terminal would break them anywhere."""
    if width is None:
        return text
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )
