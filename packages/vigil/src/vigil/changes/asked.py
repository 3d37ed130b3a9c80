"""The fields of what a start was asked for: its flags, variables, and the files that it names."""

import re

from vigil.changes.field import GIVEN, MASKED, Field, Found, content, plain
from vigil.changes.snapshot import Command, Hidden, Snapshot

_NUMBER = re.compile(r"-\d+(?:\.\d+)?\Z")


def command(snapshot: Snapshot, keyed: bool) -> Found | None:  # noqa: FBT001 - a column of the table of parts
    """Return the flags of the command."""
    return None if snapshot.command is None else _flags(snapshot.command, keyed=keyed)


def folder(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return where the command ran."""
    return None if snapshot.command is None else iter([("cwd", _folder(snapshot.command.cwd))])


def _folder(path: str) -> Field:
    return Field(what="folder of the command", text=path, same=path or None)


def inner(snapshot: Snapshot, keyed: bool) -> Found | None:  # noqa: FBT001
    """Return the flags of what a start script came to."""
    return None if snapshot.inner is None else _flags(snapshot.inner.command, keyed=keyed)


def variables(snapshot: Snapshot, keyed: bool) -> Found | None:  # noqa: FBT001
    """Return the variables of the command."""
    return None if snapshot.env is None else _variables(snapshot.env, keyed=keyed)


def inner_variables(snapshot: Snapshot, keyed: bool) -> Found | None:  # noqa: FBT001
    """Return the variables of what a start script came to."""
    return None if snapshot.inner is None else _variables(snapshot.inner.env, keyed=keyed)


def files(snapshot: Snapshot, keyed: bool) -> Found | None:  # noqa: FBT001
    """Return the files that the command names; their hashes are keyed."""
    if snapshot.files is None or not keyed:
        return None
    return ((f"file.{path}", content(f"file {path}", digest, path)) for path, digest in snapshot.files.items())


def _flags(told: Command, *, keyed: bool) -> Found:
    for flag, values in flags_of(told.words).items():
        if flag and flag in told.hidden:
            same = told.hidden[flag] if keyed else None
            yield f"flag.{flag}", Field(what=f"flag {flag}", text=MASKED, same=same, names=(flag,))
        elif flag:
            yield f"flag.{flag}", plain(f"flag {flag}", " ".join(values) or GIVEN, flag)
        else:
            yield "words", plain("command", " ".join(values))


def flags_of(words: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the values of each flag, in order; under "" what stands before the first one. `--a=b` is `--a b`."""
    found: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word.startswith("-") and not _NUMBER.match(word):
            flag, equals, value = word.partition("=")
            found.setdefault(flag, []).extend([value] if equals else [])
        else:
            found.setdefault(flag, []).append(word)
    return found


def _variables(env: dict[str, str | Hidden], *, keyed: bool) -> Found:
    for name, value in env.items():
        if isinstance(value, str):
            yield f"env.{name}", plain(f"variable {name}", value, name)
        else:
            same = value.digest if keyed else None
            yield f"env.{name}", Field(what=f"variable {name}", text=value.shown, same=same, names=(name,))
