"""What will really run: another program of that name, and files of the engine that are not those of its release."""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Edit, Finding, Severity
from vigil.preflight.seen_host import EditedSeen, HostSeen, ProgramSeen, UnlistedSeen
from vigil.screen import plain

SHOWN_FILES = 6


def check_program(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find an interpreter without the engine before one that has it, engines of two versions, and edited files."""
    program = host.program
    if program is None or host.outside:
        return
    yield from _others(command, program)
    for one in program.edited:
        if one.code or one.missing_code:
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
    """Say which files that can be loaded are others; what else differs (licences, tests that an image left out) is no news."""
    name = plain(one.package, 60)
    whose, like, seen = f"the installed {name}", "its wheel", "the hashes in the package's RECORD"
    if one.copy is not None:
        whose, seen = f"{name}, which is the working copy {plain(one.copy, 120)},", "git's index"
        like = f"its commit {plain((one.commit or '?')[:12])}"
    parts = []
    if one.code:
        verb = "differs" if one.code == 1 else "differ"
        parts.append(f"{_files(one.code)} of {whose} {verb} from {like}: {_names(one.files, one.code)}")
    if one.missing_code:
        verb = "is" if one.missing_code == 1 else "are"
        parts.append(
            f"{_files(one.missing_code)} of {whose} {verb} gone that {like} has: {_names(one.missing_files, one.missing_code)}"
        )
    return Finding(
        code="EDIT001",
        severity=Severity.NOTE,
        text="; ".join(parts),
        advice="the server runs what is there; whether it loads these files shows only once it runs",
        seen=seen,
    )


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _names(files: tuple[str, ...], count: int) -> str:
    """Return the first of the files that can be loaded: they stand before the others."""
    shown = [plain(name, 120) for name in files[: min(count, SHOWN_FILES)]]
    return ", ".join(shown) + (f", and {count - len(shown)} more" if count > len(shown) else "")


def unlisted(host: HostSeen | None) -> tuple[str, ...]:
    """Return what is to be said of packages whose files were held against nothing, a line each."""
    program = host.program if host is not None else None
    return tuple(_unlisted(one) for one in (program.unlisted if program is not None else ()))


def _unlisted(one: UnlistedSeen) -> str:
    where, what = plain(one.path, 200), f"whether files of {plain(one.package, 60)} were edited"
    return (
        f"{what}: it is the folder {where}, and no git tells how it was"
        if one.copy
        else f"{what}: {where} has no hashes of them"
    )
