"""Look ahead of a start: have the scout look at its host, and put the command through the checks."""

from importlib import import_module
from typing import Any

import anyio.to_thread
import msgspec

from vigil.engines import address, find, worth_keeping
from vigil.engines.commandline import assignments, flatten
from vigil.engines.rewritten import rewritten
from vigil.errors import VigilError
from vigil.hosts import Reach, look_ahead, reach_of
from vigil.plan import Plan
from vigil.preflight.command import Command
from vigil.preflight.finding import Report
from vigil.preflight.sight import Sight
from vigil.supervise.table import table_of

PATIENCE_S = 60.0
UNKNOWN = "no start of SGLang, vLLM or llama-server is seen in this command: nothing of it was checked"


async def check(plan: Plan, *, deep: bool = False, version: str | None = None, reached: bool = False) -> Report:
    """Return what the plan's command would die of on its host. `version`: the engine's release that it is meant for.

    A host that cannot be asked leaves the command alone to be checked; the report says so. With `reached` it raises instead,
    as `hosts.call` does: before a start it matters more that there is no way to the host.
    """
    reach = reach_of(plan.on, plan.reach)
    command = msgspec.structs.replace(command_of(plan), version=version)
    seen = Sight(troubles=(UNKNOWN,))
    if command.engine != "generic":  # of a program that we do not know there is nothing to look for
        try:
            seen = await _look(reach, question_of(plan, command, deep=deep))
        except VigilError as error:
            if reached:
                raise
            seen = Sight(troubles=(f"{reach.label} could not be looked at, the command alone was checked: {error}",))
    from vigil.preflight.examine import examine  # noqa: PLC0415 - `_look` has it loaded while the host is looked at

    return _pasted(plan, examine(command, seen))


def _pasted(plan: Plan, report: Report) -> Report:
    """Return a report whose corrected command is the plan's own with its changes: a shell's text stays one."""
    if report.corrected is None:
        return report
    corrected = rewritten(plan.command, report.words, report.corrected)
    return msgspec.structs.replace(report, corrected=corrected)


async def _look(reach: Reach, question: dict[str, Any]) -> Sight:
    """Have the host looked at, and load the checks meanwhile: that is a tenth of what a check takes."""
    found: list[dict[str, Any] | VigilError] = []

    async def ask() -> None:
        try:
            found.append(await look_ahead(reach, question, timeout_s=PATIENCE_S))
        except VigilError as error:  # raised here it would come as a group
            found.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.to_thread.run_sync(import_module, "vigil.preflight.examine")
    if isinstance(found[0], VigilError):
        raise found[0]
    return sight_of(found[0])


def command_of(plan: Plan) -> Command:
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
    return Command(words=whole, own=len(before), engine=table.name, end=end, shell=shell, env=env)


def question_of(plan: Plan, command: Command, *, deep: bool) -> dict[str, Any]:
    """Return what the scout is asked."""
    table = table_of(plan)
    kept = worth_keeping(table, plan.command, plan.env)
    where = address(table, plan.command, plan.env)
    return {
        "engine": table.name,
        "words": list(command.words),
        "own": list(command.words[command.own : command.end]),
        "env": plan.env,
        "assigned": {name: value for name, value in command.env.items() if plan.env.get(name) != value},
        "cwd": plan.cwd,
        "models": kept["models"],
        "packages": kept["packages"],
        "port": where.port if where is not None else 0,
        "address": where.host if where is not None else "",
        "deep": deep,
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
