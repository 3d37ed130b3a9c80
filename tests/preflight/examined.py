"""Put a case of the lists through all checks: its folders are made and seen by the scout, its host is a plain one."""

import shlex
from pathlib import Path

import msgspec

from preflight.hosts import host_of
from preflight.lists import Case
from vigil.plan import Plan
from vigil.preflight.command import Command
from vigil.preflight.examine import examine
from vigil.preflight.filed import with_file
from vigil.preflight.finding import Report
from vigil.preflight.sight import Sight
from vigil.scout import desk
from vigil.supervise.ahead import command_of, files_asked, question_of, sight_of


def report(case: Case, here: Path) -> Report:
    """Put one case through all checks."""
    case.make(here)
    plan = Plan(command=case.words(here), env=case.variables(here), cwd=str(here))
    command = command_of(plan, case.version)
    if (asked := files_asked(plan, command)) is not None:
        command = with_file(command, sight_of(desk.answer(desk.question_of(asked), ["files"])).files)
    return examine(command, sight(case, plan, command))


def sight(case: Case, plan: Plan, command: Command) -> Sight:
    """Return what the scout sees of the case's folders, on a plain host; a case without any speaks of no folder."""
    if not (case.files or case.tensors or case.gguf or case.look):
        return Sight(host=host_of(case.host, case.version))
    seen = desk.answer(desk.question_of(question_of(plan, command, deep=False)), ["models", "files"])
    return msgspec.structs.replace(sight_of(seen), host=host_of(case.host, case.version))


def is_corrected(case: Case, found: Report, here: Path) -> bool:
    """Tell whether the corrected command holds what the case wants there; true where it wants nothing."""
    wanted = case.corrected.replace("{here}", str(here))
    return not wanted or wanted in " ".join(found.corrected or ()) or wanted in shlex.join(found.corrected or ())
