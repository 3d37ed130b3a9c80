"""A snapshot taken apart: one field a thing that can differ, by a key that the table of explanations speaks of."""

import re
import time
from collections.abc import Iterator

import msgspec

from vigil.changes.snapshot import Gpu, Hidden, Model, Program, Snapshot, Source, Weight
from vigil.screen import size

_NUMBER = re.compile(r"-\d+(?:\.\d+)?\Z")
MASKED = "***"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """`what` and `text` are for people; `same` is compared (None: not to be compared).

    `free` and `total`, in bytes: a level, of which only a large difference matters. `names`: words by which a log names it.
    """

    what: str
    text: str
    same: str | None = ""
    secret: bool = False
    free: int | None = None
    total: int | None = None
    names: tuple[str, ...] = ()


Fields = dict[str, Field]


def fields_of(snapshot: Snapshot, key_id: str | None) -> dict[str, Fields]:
    """Return the fields by part of the snapshot, then by key. `key_id`: only digests by that key are compared."""
    keyed = snapshot.key_id == key_id and key_id is not None
    found: dict[str, Fields] = {}
    if snapshot.command is not None:
        found["command"] = dict(_command(snapshot.command.words, snapshot.command.hidden, keyed=keyed))
        found["cwd"] = {"cwd": _plain("folder of the command", snapshot.command.cwd)}
    if snapshot.env is not None:
        found["env"] = dict(_env(snapshot.env, keyed=keyed))
    if snapshot.program is not None:
        found["program"] = dict(_program(snapshot.program))
    if snapshot.packages is not None:
        found["packages"] = {
            f"package.{name.lower()}": _plain(f"package {name}", version, (name,))
            for name, version in snapshot.packages.items()
        }
    if snapshot.sources is not None:
        found["sources"] = dict(_sources(snapshot.sources))
    if snapshot.edited is not None:
        found["edited"] = dict(_edited(snapshot.edited.files))
    if snapshot.files is not None and keyed:
        found["files"] = {
            f"file.{path}": _content(f"file {path}", digest, (path,)) for path, digest in snapshot.files.items()
        }
    if snapshot.models is not None:
        found["models"] = {key: field for model in snapshot.models for key, field in _model(model)}
    found.update(_host(snapshot))
    return found


def _plain(what: str, text: str, names: tuple[str, ...] = ()) -> Field:
    return Field(what=what, text=text, same=text, names=names)


def _content(what: str, digest: str | None, names: tuple[str, ...] = (), text: str | None = None) -> Field:
    """Return a field whose content is known by a hash only."""
    return Field(what=what, text=text or f"content {digest or 'unreadable'}", same=digest, names=names)


def _command(words: tuple[str, ...], hidden: dict[str, str | None], *, keyed: bool) -> Iterator[tuple[str, Field]]:
    for flag, values in flags_of(words).items():
        if flag and flag in hidden:
            same = hidden[flag] if keyed else None
            yield f"flag.{flag}", Field(what=f"flag {flag}", text=MASKED, same=same, secret=True, names=(flag,))
        elif flag:
            yield f"flag.{flag}", _plain(f"flag {flag}", " ".join(values) or "given", (flag,))
        else:
            yield "words", _plain("command", " ".join(values))


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


def _env(env: dict[str, str | Hidden], *, keyed: bool) -> Iterator[tuple[str, Field]]:
    for name, value in env.items():
        key, what = f"env.{name}", f"variable {name}"
        if isinstance(value, str):
            yield key, _plain(what, value, (name,))
        else:
            same = value.digest if keyed else None
            yield key, Field(what=what, text=value.shown, same=same, secret=MASKED in value.shown, names=(name,))


def _program(program: Program) -> Iterator[tuple[str, Field]]:
    if program.python:
        yield "python", _plain("interpreter", f"{program.path} ({program.version or '?'})")
        return
    said = f"{program.path} ({size(program.size)}, written {_when(program.mtime)})"
    yield "program", Field(what="program", text=said, same=program.sha256 or program.ends)
    for name, digest in program.libraries.items():
        yield f"program.{name}", _content(f"library {name} beside the program", digest, (name,))


def _sources(sources: dict[str, Source]) -> Iterator[tuple[str, Field]]:
    for name, source in sources.items():
        where = f"working copy {source.path}" if source.path else "source"
        yield f"source.{name}", _plain(f"{where} of {name}", f"commit {(source.commit or 'unknown')[:12]}", (name,))
        for path, digest in (source.dirty or {}).items():
            yield f"edited.{name}.{path}", _content(f"edited file {path} of {name}", digest, (path,), _edit(digest))


def _edited(files: dict[str, dict[str, str]]) -> Iterator[tuple[str, Field]]:
    for package, paths in files.items():
        for path, digest in paths.items():
            yield (
                f"edited.{package}.{path}",
                _content(f"edited file {path} of {package}", digest, (path,), _edit(digest)),
            )


def _edit(digest: str) -> str:
    return digest if " " in digest or digest == "missing" else f"edited ({digest[:8]})"


def _model(model: Model) -> Iterator[tuple[str, Field]]:
    key, what = f"model.{model.what}", model.what if model.what == "model" else f"model of {model.what}"
    if model.path is None:
        yield key, _plain(what, f"{model.given} (not on this host yet)", (model.given,))
        return
    yield key, _plain(what, model.path, (model.path,))
    for name, digest in model.settings.items():
        if name != "config.json" or not model.declared:
            yield f"{key}.settings.{name}", _content(f"{name} of the {what}", digest, (name,))
    for name, value in model.declared.items():
        yield f"{key}.settings.config.json.{name}", _plain(f"{name} in config.json of the {what}", value, (name,))
    for name, weight in model.weights.items():
        yield f"{key}.weights.{name}", _weight(f"{name} of the {what}", name, weight)
    if model.count > len(model.weights):
        yield f"{key}.weights", Field(what=f"weights of the {what}", text=f"{model.count} files", same=model.all)


def _weight(what: str, name: str, weight: Weight) -> Field:
    if weight.size is None:
        return _plain(what, weight.trouble or "unreadable", (name,))
    text = f"{size(weight.size)}, written {_when(weight.mtime)}"
    same = weight.blob or f"{weight.size} {weight.mtime} {weight.ends}"
    return Field(what=what, text=text, same=same, names=(name,))


def _when(wall_s: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall_s))
    except (OverflowError, ValueError, OSError):
        return "?"


def _host(snapshot: Snapshot) -> dict[str, Fields]:
    found: dict[str, Fields] = {}
    machine = snapshot.machine
    if machine is not None:
        found["machine"] = {
            "host": _plain("host", machine.host),
            "boot": Field(what="boot of the host", text=machine.boot_id[:8], same=machine.boot_id),
            "kernel": _plain("kernel", machine.kernel),
            "glibc": _plain("C library", machine.glibc),
            "driver": _plain("GPU driver", machine.driver or "none"),
            "cpus": _plain("processors", str(machine.cpus)),
            "memory.limit": _plain(
                "memory limit", size(machine.memory_limit_bytes) if machine.memory_limit_bytes else "none"
            ),
            "memory.total": _plain("memory", size(machine.memory_total_bytes)),
            "memory.free": _level("free memory", machine.memory_free_bytes, machine.memory_total_bytes),
            **{
                f"limit.{name}": _plain(f"ulimit {name}", "none" if value is None else str(value))
                for name, value in machine.limits.items()
            },
        }
    if snapshot.gpus is not None:
        found["gpus"] = {key: field for index, gpu in enumerate(snapshot.gpus) for key, field in _gpu(index, gpu)}
    if snapshot.disks is not None:
        found["disks"] = {}
        for path, room in snapshot.disks.items():
            found["disks"][f"disk.{path}"] = _level(f"free space of {path}", room.free_bytes, room.total_bytes)
            found["disks"][f"disk.{path}.total"] = _plain(f"size of {path}", size(room.total_bytes))
    return found


def _gpu(index: int, gpu: Gpu) -> Iterator[tuple[str, Field]]:
    total = f", {size(gpu.total_bytes)}" if gpu.total_bytes else ""
    yield f"gpu.{index}", Field(what=f"GPU {index}", text=f"{gpu.name}{total}", same=gpu.uuid or gpu.name)
    yield f"gpu.{index}.free", _level(f"free memory of GPU {index}", gpu.free_bytes, gpu.total_bytes)


def _level(what: str, free: int | None, total: int | None) -> Field:
    return Field(what=what, text=size(free), same=None, free=free, total=total)
