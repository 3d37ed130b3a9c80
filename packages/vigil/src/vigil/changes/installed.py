"""The fields of what is installed: program, packages, edited files, models."""

import re

from vigil.changes.field import LOOSE, Field, Fields, Found, content, plain, written
from vigil.changes.snapshot import Model, Program, Snapshot, Source, Weight
from vigil.screen import size


def program(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001 - a column of the table of parts
    """Return the interpreter, or the binary and its libraries."""
    return None if snapshot.program is None else _program(snapshot.program)


def packages(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return the versions of all packages."""
    if snapshot.packages is None:
        return None
    return (
        (f"package.{re.sub(r'[-_.]+', '-', name).lower()}", plain(f"package {name}", version, name))
        for name, version in snapshot.packages.items()
    )


def sources(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return the packages that are no plain installs, and what was changed in their working copies."""
    return None if snapshot.sources is None else _sources(snapshot.sources)


def edited(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return the files that differ from their wheels."""
    if snapshot.edited is None:
        return None
    return (
        _edit(package, path, digest)
        for package, paths in snapshot.edited.files.items()
        for path, digest in paths.items()
    )


def models(snapshot: Snapshot, _: bool) -> Found | None:  # noqa: FBT001
    """Return the models, setting by setting and file by file."""
    if snapshot.models is None:
        return None
    found: Fields = {}
    for model in reversed(snapshot.models):  # of several by the same flag the first counts
        found.update(_model(model))
    return iter(found.items())


def _program(told: Program) -> Found:
    if told.python:
        said = f"{told.path} ({told.version or '?'})"
        yield "python", Field(what="interpreter", text=said, same=f"{told.path}{LOOSE}{told.version or ''}")
        return
    said = f"{told.path} ({size(told.size)}, {written(told.mtime)})"
    yield "program", Field(what="program", text=said, same=told.sha256 or told.ends)
    for name, digest in told.libraries.items():
        yield f"program.{name}", content(f"library {name} beside the program", digest, name)


def _sources(told: dict[str, Source]) -> Found:
    for name, source in told.items():
        where = f"working copy {source.path}" if source.path else "source"
        said = f"commit {(source.commit or 'unknown')[:12]}"
        yield f"source.{name}", Field(what=f"{where} of {name}", text=said, same=source.commit, names=(name,))
        for path, digest in (source.dirty or {}).items():
            yield _edit(name, path, digest)


def _edit(package: str, path: str, digest: str) -> tuple[str, Field]:
    said = digest if " " in digest or digest == "missing" else f"edited ({digest[:8]})"
    return f"edited.{package}.{path}", content(f"edited file {path} of {package}", digest, path, text=said)


def _model(model: Model) -> Found:
    key, what = f"model.{model.what}", model.what if model.what == "model" else f"model of {model.what}"
    if model.path is None:
        yield key, plain(what, f"{model.given} (not found on this host)", model.given)
        return
    yield key, plain(what, model.path, model.path)
    for name, digest in model.settings.items():
        if name != "config.json" or not model.declared:
            yield f"{key}.settings.{name}", content(f"{name} of the {what}", digest, name)
    for name, value in model.declared.items():
        yield f"{key}.settings.config.json.{name}", plain(f"{name} in config.json of the {what}", value, name)
    for name, weight in model.weights.items():
        yield f"{key}.weights.{name}", _weight(f"{name} of the {what}", name, weight)
    if model.count > len(model.weights):
        yield (
            f"{key}.weights",
            Field(what=f"weights of the {what}", text=f"{model.count} files", same=model.all or None),
        )


def _weight(what: str, name: str, weight: Weight) -> Field:
    if weight.size is None:
        return plain(what, weight.trouble or "unreadable", name)
    same = weight.blob or f"{weight.size} {weight.mtime}{LOOSE}{weight.ends or ''}"
    return Field(what=what, text=f"{size(weight.size)}, {written(weight.mtime)}", same=same, names=(name,))
