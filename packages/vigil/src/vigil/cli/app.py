"""`vigil`: the commands, and how errors leave: one line on stderr and an exit code."""

import sys
from typing import Annotated, NoReturn

import click
import typer

from vigil import __version__
from vigil.cli import logs, ps, replay, run, show, stop, up, wait
from vigil.errors import VigilError

app = typer.Typer(
    name="vigil",
    help="Bring LLM inference servers up and tell the truth about them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for module in (up, wait, run, ps, show, logs, stop, replay):
    app.command(name=module.__name__.rpartition(".")[2])(module.command)


def _version(value: bool) -> None:
    if value:
        print(f"vigil {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bring LLM inference servers up and tell the truth about them."""


def main() -> NoReturn:
    """Run the command line; never returns."""
    try:
        code = app(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        code = 2
    except click.ClickException as error:
        print(f"vigil: {error.format_message()}", file=sys.stderr)
        code = 2
    except click.Abort:
        code = 130
    except VigilError as error:
        print(f"vigil: {error}", file=sys.stderr)
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 141
    sys.exit(code if isinstance(code, int) else 0)
