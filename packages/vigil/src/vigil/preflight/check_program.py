"""What will really run: another program of that name, and files of the engine that are not those of its release."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.seen_host import EditedSeen, HostSeen, ProgramSeen
from vigil.screen import plain

CODE = (".py", ".so", ".pyd", ".cu", ".cuh", ".h", ".cpp", ".jinja", ".json")
SHOWN_FILES = 6


def check_program(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find an interpreter without the engine before one that has it, engines of two versions, and edited files."""
    program = host.program
    if program is None or host.outside:
        return
    yield from _others(command, program)
    for one in program.edited:
        if one.count > len(one.files) or any(name.endswith(CODE) for name in one.files):
            yield _edited(one)


def _others(command: Command, program: ProgramSeen) -> Iterator[Finding]:
    path = plain(program.interpreter or program.path, 200)
    at = _place(command, program)
    if not program.python:
        if program.others and at is not None and "/" not in command.words[at]:
            others = ", ".join(plain(one.path, 120) for one in program.others)
            yield _other(f"{path} will run; there is also {others}", at, Severity.NOTE)
        return
    having = [one for one in program.others if one.engine is not None and one.engine != program.engine]
    if not having:
        return
    first = having[0]
    other = f"{plain(first.path, 200)} has {command.engine} {plain(first.engine or '', 40)}"
    if program.engine is None:
        edits = (Edit(at=at, drop=1, put=(first.path,)),) if at is not None else ()
        yield _other(
            f"{path} will run, and {command.engine} is not installed for it; {other}", at, Severity.WARNING, edits
        )
    else:
        yield _other(f"{path} will run, with {command.engine} {plain(program.engine, 40)}; {other}", at, Severity.NOTE)


def _place(command: Command, program: ProgramSeen) -> int | None:
    """Return the word that names the program: the one before the engine's own that its path ends with."""
    name = program.path.rpartition("/")[2]
    return next((at for at, word in enumerate(command.words[: command.own]) if word.rpartition("/")[2] == name), None)


def _other(text: str, at: int | None, severity: Severity, edits: tuple[Edit, ...] = ()) -> Finding:
    return Finding(
        code="PATH001",
        severity=severity,
        text=text,
        advice="name the one that you mean by its whole path, or put its folder first on PATH",
        at=at,
        edits=edits,
        seen="PATH, and the packages beside each",
    )


def _edited(one: EditedSeen) -> Finding:
    loadable = sorted(one.files, key=lambda name: not name.endswith(CODE))  # what a process could load first
    names = ", ".join(plain(name, 120) for name in loadable[:SHOWN_FILES])
    more = f", and {one.count - SHOWN_FILES} more" if one.count > SHOWN_FILES else ""
    files = "1 file" if one.count == 1 else f"{one.count} files"
    return Finding(
        code="EDIT001",
        severity=Severity.NOTE,
        text=f"{files} of the installed {plain(one.package, 60)} differ from its wheel: {names}{more}",
        advice="the server runs what is there; whether it loads these files shows only once it runs",
        seen="the hashes in the package's RECORD",
    )
