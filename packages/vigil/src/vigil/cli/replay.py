"""`vigil replay TRACE`: the same verdicts from a recorded trace."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from vigil.cli import options


def command(
    trace: Annotated[Path, typer.Argument(metavar="TRACE")],
    json: options.Json = False,
    every: Annotated[bool, typer.Option("--all", help="Print each verdict on the way, not only the last.")] = False,
) -> None:
    """Replay a recorded trace; print the verdict that it ends in (with --all: each on the way)."""
    from vigil.cli.render import text_of
    from vigil.supervise.replay import replay

    last = None
    for verdict in replay(trace):
        if every and last is not None:
            print(msgspec.json.encode(last).decode() if json else text_of(last, None) + "\n")
        last = verdict
    if last is None:
        raise typer.Exit(2)
    print(msgspec.json.encode(last).decode() if json else text_of(last, trace))
    raise typer.Exit(last.exit_code)
