"""`vigil replay TRACE`: the same verdicts from a recorded trace."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from vigil.cli import options
from vigil.screen import plain_json


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
            print(_json(last) if json else text_of(last, None) + "\n")
        last = verdict
    if last is None:
        raise typer.Exit(2)
    print(_json(last) if json else text_of(last, trace))
    raise typer.Exit(last.exit_code)


def _json(value: Any) -> str:
    return plain_json(msgspec.json.encode(value).decode())
