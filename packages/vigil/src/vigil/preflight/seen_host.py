"""What the host offers to the start, as the scout saw it. What is None could not be seen."""

import msgspec


class HolderSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds a port or a GPU's memory. `pid` None: it may not be seen; `server`: what vigil started it as."""

    pid: int | None = None
    name: str = ""
    argv: tuple[str, ...] = ()
    uid: int | None = None
    server: str = ""
    age_s: float | None = None
    used_bytes: int | None = None


class PortSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Who listens on the port that the server would take."""

    port: int
    holders: tuple[HolderSeen, ...] = ()


class GpuSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, numbered as the driver does (by its place on the bus). `divided`: into parts (MIG), which are not told."""

    index: int
    name: str = ""
    uuid: str = ""
    total_bytes: int | None = None
    free_bytes: int | None = None
    capability: tuple[int, int] | None = None
    divided: bool = False
    holders: tuple[HolderSeen, ...] = ()


class RoomSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A file system that the server would write to; `places`: what of it, the first few."""

    path: str
    places: tuple[str, ...] = ()
    total_bytes: int = 0
    free_bytes: int = 0
    free_files: int | None = None


class SizeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How large a model is. `path` None: it is not on the host. `numbers`: those of its config.json that a cache hangs on.

    `one_cache`: all its layers keep the plain cache that these numbers tell.
    """

    what: str
    given: str
    path: str | None = None
    bytes: int | None = None
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    dtype: str = ""
    quantised: str = ""
    one_cache: bool = False


class TorchSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The torch that the engine will import: `cuda` and `rocm` are the versions that it was built for."""

    version: str = ""
    cuda: str | None = None
    rocm: str | None = None


class OtherSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Another program of the same name on PATH; `engine`: the version of the engine that it has, where it is an interpreter."""

    path: str
    engine: str | None = None


class EditedSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an installed package that are not what its wheel brought, or of a working copy (`copy`) what its commit has.

    `files` differ, `missing_files` are gone: `count` and `missing_count` of them, the first few by name, those that can be loaded
    (`code`, `missing_code`) first.
    """

    package: str
    copy: str | None = None
    commit: str | None = None
    files: tuple[str, ...] = ()
    count: int = 0
    code: int = 0
    missing_files: tuple[str, ...] = ()
    missing_count: int = 0
    missing_code: int = 0


class UnlistedSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A package of which nothing says how its files were: a working copy without git (`copy`), or no hashes in its RECORD."""

    package: str
    copy: bool = False
    path: str = ""


class ProgramSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What the command comes to. `engine`: the version installed for the interpreter; `ray`: it has Ray beside it.

    `nccl`: the version of the wheel that brings NCCL, None where there is none (torch may bring it itself). `unchecked`: files
    that were not compared in the time there was.
    """

    path: str
    python: bool = False
    interpreter: str | None = None
    engine: str | None = None
    torch: TorchSeen | None = None
    nccl: str | None = None
    ray: bool = False
    edited: tuple[EditedSeen, ...] = ()
    unlisted: tuple[UnlistedSeen, ...] = ()
    unchecked: int = 0
    others: tuple[OtherSeen, ...] = ()


class LimitsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that the server is born with, (soft, hard); None: none."""

    nofile: tuple[int | None, int | None] = (None, None)
    nproc: tuple[int | None, int | None] = (None, None)
    memlock: tuple[int | None, int | None] = (None, None)


class MemorySeen(msgspec.Struct, frozen=True, kw_only=True):
    """The host's memory in bytes; `limit`: the lowest of our control groups; `swap`: what can be swapped out, in use or not."""

    total: int | None = None
    free: int | None = None
    limit: int | None = None
    swap: int | None = None


class SettingsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What the environment sets, and what there is of it: network interfaces, InfiniBand adapters, a token for the hub."""

    variables: dict[str, str] = msgspec.field(default_factory=dict)
    token: bool = False
    interfaces: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The host. `outside`: the command runs in a container or elsewhere, so that little of this is its own; `behind` leads there.

    `sent`: to another host that has the same files.

    `gpus` empty: there is no NVIDIA GPU; `others`: whose GPUs there are instead. `compat`: a newer libcuda that images put before
    the driver's own.
    """

    outside: bool = False
    behind: str = ""
    sent: bool = False
    port: PortSeen | None = None
    gpus: tuple[GpuSeen, ...] | None = None
    others: tuple[str, ...] = ()
    driver: str | None = None
    driver_cuda: tuple[int, int] | None = None
    compat: str = ""
    program: ProgramSeen | None = None
    rooms: tuple[RoomSeen, ...] | None = None
    limits: LimitsSeen | None = None
    memory: MemorySeen | None = None
    settings: SettingsSeen | None = None
    sizes: tuple[SizeSeen, ...] = ()
    troubles: tuple[str, ...] = ()
