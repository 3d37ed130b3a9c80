"""Checks of a plan that need no start: what cannot work is refused in one line, and nothing was started."""

import os
import re
from pathlib import Path

from vigil.errors import UsageError
from vigil.plan import Plan

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_NO_TEXT = re.compile(r"[\ud800-\udfff]")  # what Python makes of bytes that are no UTF-8
_NUMBER = re.compile(r"[+-]?\d+\Z")


def checked(plan: Plan, trace: Path | None = None) -> Plan:
    """Return the plan after all checks; raise `UsageError` in one line."""
    check_name(plan)
    check_key(plan)
    if plan.command:
        check_command(plan)
        check_port(plan)
        check_folder(plan)
    check_process(plan)
    check_trace(trace)
    return plan


def check_name(plan: Plan) -> None:
    """Refuse what cannot be the name of a folder."""
    if plan.name is not None and not _NAME.match(plan.name):
        raise UsageError(
            f"{plan.name!r} is no name: letters, digits, '.', '_' and '-', 64 at most, beginning with a letter or digit"
        )


def check_key(plan: Plan) -> None:
    """Refuse a key that is named and not there."""
    if plan.api_key_env is not None and not os.environ.get(plan.api_key_env):
        raise UsageError(f"--api-key-env {plan.api_key_env}: that variable is not set here; export it first")


def check_command(plan: Plan) -> None:
    """Refuse a command without a program."""
    if any(_NO_TEXT.search(word) for word in plan.command):
        raise UsageError("the command has bytes that are no UTF-8: give that file a name that is, or a link with one")
    if not plan.command[0].strip():
        raise UsageError("the command is empty: vigil up [OPTIONS] -- COMMAND... (is a variable in it not set?)")


def check_port(plan: Plan) -> None:
    """Refuse a port that is none: the server would load for minutes and then die of it."""
    from vigil.engines.address import HIGHEST_PORT
    from vigil.engines.commandline import flatten, values
    from vigil.engines.registry import detect

    if plan.job:
        return
    flags = [flag for flag in detect(plan.command).port_flags if flag.startswith("--")]
    for value in values(flatten(plan.command), flags)[-1:]:
        if not _NUMBER.match(value):
            continue  # `$PORT`, or another program's flag of that name
        if not 0 <= int(value) <= HIGHEST_PORT:
            raise UsageError(f"port {value[:20]} is out of range: give the server a --port from 1 to {HIGHEST_PORT}")
        if int(value) == 0 and plan.url is None and plan.ready != "log":
            raise UsageError("port 0 lets the system choose one that nobody knows: give the server a --port, or --url")


def check_folder(plan: Plan) -> None:
    """Refuse a folder that is not there to start in; another host will say so itself."""
    if plan.on is None and plan.reach is None and plan.cwd is not None and not Path(plan.cwd).is_dir():
        raise UsageError(f"--cwd {plan.cwd}: there is no such folder")


def check_process(plan: Plan) -> None:
    """Refuse a process that is not there, and a text that every process has."""
    if plan.match is not None and not plan.match.strip():
        raise UsageError("--match is empty: it would fit every process; give a text of the server's command line")
    here = plan.on is None and plan.reach is None
    if here and plan.pid is not None and not Path(f"/proc/{plan.pid}").exists():
        raise UsageError(f"--pid {plan.pid}: there is no such process here; it ended before, or the number is wrong")


def check_trace(trace: Path | None) -> None:
    """Refuse a trace that has no place to be."""
    if trace is None:
        return
    folder = trace.absolute().parent
    if not folder.is_dir():
        raise UsageError(f"--trace {trace}: there is no folder {folder}")
    if trace.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError(f"--trace {trace} cannot be written: give a file in a folder of yours")
