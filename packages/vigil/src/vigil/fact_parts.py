"""What facts are made of: the structs that a fact holds several of. Pure data, as facts are."""

from typing import Literal

import msgspec


class ProcessStack(msgspec.Struct, frozen=True, kw_only=True):
    """Where one process stands. `frames`: its main thread's, the innermost first, as `function (file:line)`; or none to be seen.

    `state` is the kernel's letter (R, S, D, T), `waits_in` the kernel's function in which it waits.
    """

    pid: int
    name: str = ""
    state: str = ""
    waits_in: str = ""
    frames: tuple[str, ...] = ()


Value = str | int | float | bool | None
"""A setting, as it may be shown: without its secrets."""


class AttestedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A Python process of the server. `error`: why it did not say what it runs. `marks`: variables as it has them now."""

    pid: int
    title: str = ""
    error: str = ""
    marks: dict[str, str] = msgspec.field(default_factory=dict)


class Switching(msgspec.Struct, frozen=True, kw_only=True):
    """What vigil-engine told in a process of the server: whether it decides, by which schedule, and what is in force.

    `k`: draft tokens a step, None before the first; `refused`, `errors`: why it does not switch.
    """

    pid: int
    deciding: bool = False
    engine: str = ""
    version: str = ""
    rank: str = ""
    schedule: str = ""
    mode: str = ""
    k: int | None = None
    steps: int = 0
    switches: int = 0
    switches_last_minute: int = 0
    refused: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class EditedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an installed package that differs from its wheel, as the start found it: `name` below `site`."""

    package: str
    name: str
    how: str = ""
    site: str = ""
    path: str = ""


class LoadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that processes `pids` have loaded. `stale`: those that loaded something else than is on disk now.

    `asked`: the names by which it was asked for. `unsure`: nobody saw it being read (it is compiled, or the program itself), and
    it was touched since the start. No `modules`: it was read, or stood on a stack, and is no module.
    """

    path: str
    modules: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()
    asked: tuple[str, ...] = ()
    unsure: bool = False
    sha256: str = ""


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A package with edited files in `site` that all processes load from elsewhere."""

    package: str
    site: str
    loaded_from: str


class LiveClass(msgspec.Struct, frozen=True, kw_only=True):
    """How many instances of a class one process has. `frozen`: not all of its objects can be listed."""

    name: str
    pid: int
    defined: bool = False
    alive: int = 0
    frozen: bool = False


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are in force, nested ones under dotted names: of processes `pids`, or by the server's own account."""

    source: str = ""
    pids: tuple[int, ...] = ()
    values: dict[str, Value] = msgspec.field(default_factory=dict)
    error: str = ""


class Drafted(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer, or the counters around it, say of speculation: tokens made, steps of the target that made them."""

    tokens: int
    steps: int | None = None
    proposed: int | None = None
    accepted: int | None = None


class KernelLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the kernel's log: its OOM killer ended `pid`, or NVIDIA's driver reported an error of a GPU (an Xid).

    `ago_s`: seconds from then to the end of the attempt, or to when it was read. `group`: the control group of the killed
    process. `ours`: `pid` was seen in the server's tree; None where that is not known.
    """

    what: Literal["oom_kill", "xid"]
    text: str
    ago_s: float
    pid: int | None = None
    name: str = ""
    group: str = ""
    ours: bool | None = None


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """A file system that begins at `path`, and what the server has there. `free_files`: inodes that are left, if counted."""

    path: str
    total_bytes: int
    free_bytes: int
    places: tuple[str, ...] = ()
    free_files: int | None = None


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds something, as far as it may be seen.

    `server`: the name under which vigil started it. `ours`: it is of the watched tree. `used_bytes`: of a GPU's memory.
    """

    pid: int | None = None
    name: str = ""
    argv: tuple[str, ...] = ()
    uid: int | None = None
    server: str = ""
    ours: bool = False
    used_bytes: int | None = None


class GpuMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of one GPU, and who holds it, the largest first. None: the driver does not say."""

    index: int
    name: str = ""
    used_bytes: int | None = None
    total_bytes: int | None = None
    holders: tuple[Holder, ...] = ()
