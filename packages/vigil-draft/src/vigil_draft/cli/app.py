"""`vigil draft` and its commands; each imports what it needs when it is asked for."""

from importlib import import_module

import typer

COMMANDS = ("inspect", "convert", "prepare", "extract", "train", "report", "eval", "verify", "widen")

app = typer.Typer(help="Make, check and convert EAGLE-3 draft models.", rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _draft() -> None:
    """Make, check and convert EAGLE-3 draft models."""


for _name in COMMANDS:
    app.command(name=_name)(import_module(f"vigil_draft.cli.{_name}").command)
