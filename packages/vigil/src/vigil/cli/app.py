"""`vigil`: the commands, and how errors leave: one line on stderr and an exit code."""

import os
import sys
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from vigil import __version__
from vigil.cli import plugins
from vigil.cli.saying import mention, open_streams
from vigil.errors import VigilError
from vigil.screen import hide_secrets, plain

BROKEN_PIPE = 141
INTERRUPTED = 130
ERROR_LIMIT = 600
# `ClickException`: typer brought a click of its own along from 0.26 on and stands on the real one before that.
_Misuse: type[Exception] = typer.BadParameter.__mro__[2]

COMMANDS = (
    "up",
    "check",
    "wait",
    "run",
    "ps",
    "show",
    "logs",
    "stop",
    "spec",
    "diagnose",
    "diff",
    "replay",
    "bench",
    "compare",
    "tune",
    "report",
    "flags",
)
# as with `env` and `docker run`: what comes after the command is the server's
_COMMAND_FOLLOWS = {name: {"allow_interspersed_args": False} for name in ("up", "run", "check", "tune")}


def commands(names: tuple[str, ...] | None = None) -> typer.Typer:
    """Return the command line with these commands: to import those that nobody asked for takes longer than most commands."""
    names, everything = names or (*COMMANDS, *plugins.plugins()), names is None
    app = typer.Typer(
        name="vigil",
        help="Bring LLM inference servers up and tell the truth about them.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_options)
    for name in names:
        module = import_module(f"vigil.cli.{name}") if name in COMMANDS else None
        group = getattr(module, "app", None) if module else plugins.load(name, asked=not everything)
        if group is not None:
            app.add_typer(group, name=name)
        elif module is not None:
            app.command(name=name, context_settings=_COMMAND_FOLLOWS.get(name))(module.command)
    return app


def _asked_for(words: list[str]) -> tuple[str, ...] | None:
    """Return the commands that a command line needs: the one that it names, else all, for the help and for what is misspelt."""
    if not words or words[0].startswith("-"):
        return None
    if words[0] in COMMANDS or words[0] in plugins.plugins():
        return (words[0],)
    plugins.refuse_missing(words[0])
    return None


def _version(value: bool) -> None:
    if value:
        print(f"vigil {__version__}")
        raise typer.Exit


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
        code = commands(_asked_for(sys.argv[1:]))(prog_name="vigil", standalone_mode=False)
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
    if path in {"vigil up", "vigil run", "vigil tune"} and "Missing argument" in text:
        return f"no command was given: {path} [OPTIONS] -- COMMAND..."
    return f"{text} (see: {path} --help)"
