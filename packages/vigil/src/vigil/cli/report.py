"""`vigil report RESULTS...`: show results again, and draw them."""

from pathlib import Path
from typing import Annotated

import typer

from vigil.cli import options
from vigil.cli.saying import mention
from vigil.errors import UsageError

Results = Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Folders that `bench` or `compare` left.")]
Pictures = Annotated[
    Path | None, typer.Option("--pictures", metavar="FOLDER", help="Draw them into this folder, as PNG and SVG.")
]


def command(results: Results, pictures: Pictures = None, json: options.Json = False) -> None:
    """Show results as a table with the answers; with `--pictures` draw throughput, speed for one user and latency."""
    from vigil.cli.telling import tell

    folders = [path.parent if path.is_file() else path for path in results]
    if pictures is not None:
        _check_can_draw()
    reports = tell(folders, json=json)
    if pictures is None:
        return
    from vigil.bench.picture import draw

    for path in draw(reports, pictures):
        mention(f"drawn: {path}")


def _check_can_draw() -> None:
    """Refuse in one line where there is nothing to draw with."""
    import importlib.util

    if importlib.util.find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'vigil-serve[pictures]'")
