"""Tell what folders of results hold: figures, answers, and how the servers' settings differ."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vigil.cli.figures import table_of
from vigil.cli.saying import say
from vigil.screen import plain, plain_json

if TYPE_CHECKING:
    from vigil.bench.report import Report


def tell(folders: Sequence[Path], *, json: bool, keep: bool = False) -> list["Report"]:
    """Print folders of results, for people or as JSON. `keep`: write the report and vLLM's shape beside the rows as well."""
    from vigil.bench.folder import read_meta, read_rows, read_servers
    from vigil.bench.report import report

    reports = [report(read_meta(path), read_rows(path), read_servers(path)) for path in folders]
    for one in reports if json else ():
        say(plain_json(msgspec.json.encode(one).decode()))
    if not json:
        say("\n\n".join(map(text_of, reports)))
    for path, one in zip(folders, reports, strict=True) if keep else ():
        save(path, one)  # what cannot be written, on a full disk, has been said
    return reports


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

    parts = [table_of(one.figures)]
    parts += [plain(answer.text, 1000) for answer in one.answers]
    settings = {arm: facts.get("settings") or {} for arm, facts in one.servers.items()}
    differing = differences(settings)
    notes = [*one.meta.notes, *(f"the servers say that they differ in {text}" for text in differing)]
    if notes:
        parts.append("\n".join(plain(note, 300) for note in notes))
    return "\n\n".join(parts)
