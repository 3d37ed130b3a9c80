"""Look ahead of a start: what the scout is asked of a command's host, and what its answer means for the command."""

from importlib import import_module
from typing import Any

import msgspec

from vigil.engines import address, find, worth_keeping
from vigil.engines.commandline import assignments, flatten
from vigil.engines.rewritten import rewritten
from vigil.errors import VigilError
from vigil.hosts import Reach, look_here
from vigil.plan import Plan
from vigil.preflight.command import Command
from vigil.preflight.filed import file_of, with_file
from vigil.preflight.finding import Report
from vigil.preflight.sight import Sight
from vigil.supervise.table import table_of

PATIENCE_S = 60.0
CHECKS = "vigil.preflight.examine"
"""To be loaded while the host is looked at: that is a tenth of what a check takes."""
UNKNOWN = (
    "no start of SGLang, vLLM or llama-server is seen in this command: nothing of it was checked (a script is not read: give the "
    "command line that it runs)"
)


def check_here(plan: Plan, *, deep: bool = False, version: str | None = None) -> Report:
    """Return what the plan's command would die of on this machine. `version`: the engine's release that it is meant for.

    It waits, and wants to be asked before there are threads: within an event loop, and for other hosts, `looking.check` is asked.
    """
    command = command_of(plan, version)
    if command.engine == "generic":
        return report_of(plan, command, Sight(troubles=(UNKNOWN,)))
    try:
        if (asked := files_asked(plan, command)) is not None:
            command = with_file(command, _look(asked).files)
        seen = _look(question_of(plan, command, deep=deep))
    except VigilError as error:
        seen = unseen(Reach(), error)
    return report_of(plan, command, seen)


def _look(question: dict[str, Any]) -> Sight:
    with look_here(question, timeout_s=PATIENCE_S) as answer:
        import_module(CHECKS)
        return sight_of(answer())


def unseen(reach: Reach, error: VigilError) -> Sight:
    """Return what is seen of a host that could not be asked: nothing, and why."""
    return Sight(troubles=(f"{reach.label} could not be looked at, the command alone was checked: {error}",))


def report_of(plan: Plan, command: Command, seen: Sight) -> Report:
    """Put the command through the checks; the corrected one is the plan's own with its changes: a shell's text stays one."""
    report: Report = import_module(CHECKS).examine(command, seen)
    if report.corrected is None:
        return report
    corrected = rewritten(plan.command, report.words, report.corrected)
    return msgspec.structs.replace(report, corrected=corrected)


def command_of(plan: Plan, version: str | None = None) -> Command:
    """Return the plan's command as it is checked: without a shell, what would end it there is part of it."""
    table = table_of(plan)
    shell = flatten(plan.command) != plan.command
    seen, before, own = find(plan.command)
    if seen.name != table.name:
        before, own = (), (*before, *own)
    env = {**plan.env, **assignments(before)}
    words = (*before, *own)
    whole = words if shell or plan.command[: len(words)] != words else plan.command
    end = len(words) if len(whole) > len(words) else None
    return Command(words=whole, own=len(before), engine=table.name, end=end, shell=shell, env=env, version=version)


def files_asked(plan: Plan, command: Command) -> dict[str, Any] | None:
    """Return what the scout is asked first: the text of a file of settings, a part of the command; None where it names none."""
    given = file_of(command)
    if given is None:
        return None
    return {**question_of(plan, command, deep=False), "files": [given.value], "parts": ["files"]}


def question_of(plan: Plan, command: Command, *, deep: bool) -> dict[str, Any]:
    """Return what the scout is asked."""
    table = table_of(plan)
    words = plan.command if command.filed is None else command.words
    kept, where, file = worth_keeping(table, words, plan.env), address(table, words, plan.env), file_of(command)
    return {
        "engine": table.name,
        "words": list(command.words),
        "own": list(command.words[command.own : command.end]),
        "before": command.own,
        "env": plan.env,
        "assigned": {name: value for name, value in command.env.items() if plan.env.get(name) != value},
        "cwd": plan.cwd,
        "models": kept["models"],
        "packages": kept["packages"],
        "port": where.port if where is not None else 0,
        "address": where.host if where is not None else "",
        "deep": deep,
        "files": [file.value] if file is not None else [],
    }


def sight_of(answer: dict[str, Any]) -> Sight:
    """Turn the scout's answer into a sight, part by part: one that cannot be read is a trouble, and the others count."""
    parts: dict[str, Any] = {}
    troubles = [str(one) for one in answer.get("troubles") or ()]
    for field in msgspec.structs.fields(Sight):
        if field.name == "troubles" or field.name not in answer:
            continue
        try:
            parts[field.name] = msgspec.convert(answer[field.name], field.type)
        except msgspec.ValidationError as error:
            troubles.append(f"{field.name}: what the host answered cannot be read: {error}")
    return Sight(**parts, troubles=tuple(troubles))
