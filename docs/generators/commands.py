"""The command line reference, from the same objects that `vigil COMMAND --help` prints."""

from typing import Any

import typer

from generators.markdown import code, page, prose, table
from vigil.cli.app import commands


def pages() -> dict[str, str]:
    """Return the page by its path."""
    group: Any = typer.main.get_command(commands())
    intro = (
        f"{prose(group.help)}\n\nWhat stands after `--` is the server's command line and is not touched. "
        "Times are written `30s`, `15m`, `1h`, `1h30m`, or as a number of seconds. [Exit codes](exit-codes.md)."
    )
    parts = [part for name, command in group.commands.items() if not command.hidden for part in section(name, command)]
    return {"command-line.md": page("The command line", "vigil/cli/", intro, *parts)}


def section(name: str, command: Any) -> list[str]:
    """Return the section of one command, or those of a group's own."""
    inner = getattr(command, "commands", None)
    if inner:
        return [part for word, one in inner.items() for part in section(f"{name} {word}", one)]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join(["vigil", name, "[OPTIONS]", *(metavar_of(one) for one in arguments)])
    rows = [option_row(one) for one in options_of(command)]
    return [f"## vigil {name}", prose(command.help), code(usage), table(["option", "meaning", "default"], rows)]


def options_of(command: Any) -> list[Any]:
    """Return the options that `--help` shows."""
    return [one for one in command.params if one.param_type_name == "option" and not one.hidden]


def metavar_of(parameter: Any) -> str:
    """Return how a parameter's value is called."""
    return parameter.metavar or ("" if getattr(parameter, "is_flag", False) else (parameter.name or "").upper())


def option_row(option: Any) -> list[str]:
    """Return one option as a row."""
    flags = ", ".join(option.opts)
    value = "" if option.is_flag else metavar_of(option)
    unset = option.default is None or option.is_flag
    return [code(f"{flags} {value}".strip()), prose(option.help or ""), "" if unset else code(str(option.default))]
