"""A snapshot as the host made it (`launcher.snapshot`), read with care: a part that is not there was not seen."""

from typing import Any

import msgspec

SCHEMA = 1


class Hidden(msgspec.Struct, frozen=True):
    """A value that is secret, or too long to keep. `digest`: by the host's own key; None where it has none."""

    shown: str
    digest: str | None = None


class Command(msgspec.Struct, frozen=True):
    """The words, without secrets; `hidden`: a digest of what was taken out, by flag."""

    words: tuple[str, ...] = ()
    hidden: dict[str, str | None] = {}
    cwd: str = ""


class Inner(msgspec.Struct, frozen=True):
    """What a start script came to: the words and variables of the engine's own process."""

    command: Command
    env: dict[str, str | Hidden]


class Room(msgspec.Struct, frozen=True):
    """What is free of something, in bytes (`free_files` in files)."""

    free_bytes: int | None = None
    total_bytes: int | None = None
    free_files: int | None = None


class Gpu(msgspec.Struct, frozen=True):
    """A GPU, and its memory at that moment."""

    name: str = ""
    uuid: str = ""
    total_bytes: int | None = None
    free_bytes: int | None = None


class Machine(msgspec.Struct, frozen=True):
    """The host. What was not seen is empty or None; a driver or a limit that is None was looked for, and there is none."""

    boot_id: str = ""
    host: str = ""
    kernel: str = ""
    glibc: str = ""
    cpus: int | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_limit_bytes: int | msgspec.UnsetType | None = msgspec.UNSET
    limits: dict[str, int | None] = {}
    driver: str | msgspec.UnsetType | None = msgspec.UNSET


class Weight(msgspec.Struct, frozen=True):
    """A file of weights: size, time, and a hash of its ends or the name of its blob."""

    size: int | None = None
    mtime: int = 0
    ends: str | None = None
    blob: str | None = None
    trouble: str | None = None


class Model(msgspec.Struct, frozen=True):
    """A model that the command names. `path` None: it was not on the host. `all`: one hash over all weights, listed or not."""

    what: str
    given: str = ""
    path: str | None = None
    commit: str | None = None
    settings: dict[str, str | None] = {}
    weights: dict[str, Weight] = {}
    count: int = 0
    all: str = ""
    declared: dict[str, str] = {}


class Program(msgspec.Struct, frozen=True):
    """What ran: an interpreter (`python`), or a binary."""

    path: str
    python: bool = False
    real: str = ""
    version: str | None = None
    script: str | None = None
    size: int | None = None
    mtime: int = 0
    sha256: str | None = None
    ends: str | None = None
    libraries: dict[str, str | None] = {}


class Source(msgspec.Struct, frozen=True):
    """Where a package that is no plain install came from. `dirty` None: that could not be seen."""

    path: str = ""
    commit: str | None = None
    dirty: dict[str, str] | None = None


class Edited(msgspec.Struct, frozen=True):
    """Files that differ from their wheels, by package. `unchecked`: how many were not reached."""

    files: dict[str, dict[str, str]] = {}
    unchecked: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What one start found. None: that part was not seen, so nothing can be said of it."""

    schema: int = SCHEMA
    wall_s: float = 0.0
    whole: bool = False
    key_id: str | None = None
    command: Command | None = None
    inner: Inner | None = None
    env: dict[str, str | Hidden] | None = None
    program: Program | None = None
    packages: dict[str, str] | None = None
    sources: dict[str, Source] | None = None
    edited: Edited | None = None
    files: dict[str, str | None] | None = None
    models: tuple[Model, ...] | None = None
    machine: Machine | None = None
    gpus: tuple[Gpu, ...] | None = None
    disks: dict[str, Room] | None = None
    troubles: tuple[str, ...] = ()


def read_snapshot(value: dict[str, Any]) -> Snapshot | None:
    """Return the snapshot, or None where there is none, or another version wrote it."""
    try:
        found = msgspec.convert(value, Snapshot) if value else None
    except msgspec.ValidationError:
        return None
    return found if found is not None and found.schema == SCHEMA else None
