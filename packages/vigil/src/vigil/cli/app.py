"""`vigil`: the commands, and how errors leave: one line on stderr and an exit code."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from vigil import __version__
from vigil.cli import bench, check, compare, diagnose, diff, flags, logs, ps, replay, report, run, show, stop, up, wait
from vigil.cli.saying import mention, open_streams
from vigil.errors import VigilError
from vigil.screen import hide_secrets, plain

BROKEN_PIPE = 141
INTERRUPTED = 130
ERROR_LIMIT = 600
# `ClickException`: typer brought a click of its own along from 0.26 on and stands on the real one before that.
_Misuse: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="vigil",
    help="Bring LLM inference servers up and tell the truth about them.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
COMMAND_FOLLOWS = {
    "allow_interspersed_args": False
}  # as with `env` and `docker run`: what comes after it is the server's
for module in (up, check, wait, run, ps, show, logs, stop, diagnose, diff, replay, bench, compare, report):
    settings = COMMAND_FOLLOWS if module in {up, run, check} else None
    app.command(name=module.__name__.rpartition(".")[2], context_settings=settings)(module.command)
app.add_typer(flags.app, name="flags")


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
    code: object
    open_streams()
    try:
        code = app(prog_name="vigil", standalone_mode=False)
        sys.stdout.flush()  # a reader that has gone shows itself here, not at the interpreter's end
    except _Misuse as error:
        code = _refuse(_advised(error))
    except VigilError as error:
        _refuse(str(error))
        code = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except OSError as error:
        code = _unwritten(error)
    sys.exit(code if isinstance(code, int) else 0)


def _unwritten(error: OSError) -> int:
    """Return the exit code where standard output takes no more; say so, unless its reader has gone."""
    if error.filename is not None:
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whatever is still buffered goes nowhere
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    mention(f"the output could not be written: {error.strerror}")
    return 1


def _refuse(text: str) -> int:
    """Say in one line what is wrong; return the exit code of a usage error."""
    mention(plain(hide_secrets(" ".join(text.split())), ERROR_LIMIT))
    return 2


def _advised(error: Exception) -> str:
    """Return what is wrong with the command line, and where its help stands."""
    text = str(getattr(error, "format_message", lambda: error)()).strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", None) or "vigil"
    if path in {"vigil up", "vigil run"} and "Missing argument" in text:
        return f"no command was given: {path} [OPTIONS] -- COMMAND..."
    return f"{text} (see: {path} --help)"
