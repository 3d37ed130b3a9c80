"""Look ahead of a start without holding up what else runs, on any host."""

from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread

from vigil.errors import VigilError
from vigil.hosts import Reach, look_ahead, reach_of
from vigil.plan import Plan
from vigil.preflight.filed import with_file
from vigil.preflight.finding import Report
from vigil.preflight.sight import Sight
from vigil.supervise.ahead import (
    CHECKS,
    PATIENCE_S,
    UNKNOWN,
    command_of,
    files_asked,
    question_of,
    report_of,
    sight_of,
    unseen,
)


async def check(plan: Plan, *, deep: bool = False, version: str | None = None, reached: bool = False) -> Report:
    """Return what the plan's command would die of on its host. `version`: the engine's release that it is meant for.

    A host that cannot be asked leaves the command alone to be checked; the report says so. With `reached` it raises instead,
    as `hosts.call` does: before a start it matters more that there is no way to the host.
    """
    reach = reach_of(plan.on, plan.reach)
    command = command_of(plan, version)
    if command.engine == "generic":  # of a program that we do not know there is nothing to look for
        return report_of(plan, command, Sight(troubles=(UNKNOWN,)))
    try:
        if (asked := files_asked(plan, command)) is not None:
            command = with_file(command, (await _look(reach, asked)).files)
        seen = await _look(reach, question_of(plan, command, deep=deep))
    except VigilError as error:
        if reached:
            raise
        seen = unseen(reach, error)
    return report_of(plan, command, seen)


async def _look(reach: Reach, question: dict[str, Any]) -> Sight:
    """Have the host looked at, and load the checks meanwhile."""
    found: list[dict[str, Any] | VigilError] = []

    async def ask() -> None:
        try:
            found.append(await look_ahead(reach, question, timeout_s=PATIENCE_S))
        except VigilError as error:  # raised here it would come as a group
            found.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.to_thread.run_sync(import_module, CHECKS)
    if isinstance(found[0], VigilError):
        raise found[0]
    return sight_of(found[0])
