"""`vigil draft report DIR...`: the course of trainings, drawn."""

from pathlib import Path
from typing import Annotated

import typer

Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="Folders that `train` wrote, or their record.jsonl.")
]
Pictures = Annotated[
    Path | None, typer.Option("--pictures", metavar="FOLDER", help="Draw them into this folder, as PNG and SVG.")
]


def command(
    folders: Folders,
    pictures: Pictures = None,
    json: Annotated[bool, typer.Option("--json", help="Print the records as one JSON object.")] = False,
) -> None:
    """Show the course of one training or of several: loss, accuracy of each guess and acceptance length over tokens."""
    from dataclasses import asdict

    from vigil.cli.charting import charts
    from vigil.cli.saying import mention
    from vigil.screen import json_of
    from vigil_draft.learn.curves import draw, panels_of
    from vigil_draft.learn.record import named_apart, read, told

    if pictures is not None:
        _check_can_draw()
    records = named_apart([read(path) for path in folders])
    if json:
        print(json_of({"schema": 1, "records": [asdict(one) for one in records]}))
    else:
        print("\n".join([*map(told, records), ""]))
        print(charts(panels_of(records)))
    for path in draw(records, pictures) if pictures is not None else []:
        mention(f"drawn: {path}")


def _check_can_draw() -> None:
    """Refuse in one line where there is nothing to draw with."""
    from importlib.util import find_spec

    from vigil.errors import UsageError

    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'vigil-serve[pictures]'")
