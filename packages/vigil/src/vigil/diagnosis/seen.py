"""What the host showed beside the log, when an attempt ended or afterwards."""

from typing import Literal

import msgspec

from vigil.fact_parts import GpuMemory, Holder, KernelLine, Room

Topic = Literal["kernel", "rooms", "ports", "gpus"]


class HeldPort(msgspec.Struct, frozen=True, kw_only=True):
    """Who listens on a port; nobody where `holders` is empty."""

    port: int
    holders: tuple[Holder, ...] = ()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of the kernel, the file systems, the ports that were looked at, the GPUs. Empty: it was not looked at."""

    kernel: tuple[KernelLine, ...] = ()
    rooms: tuple[Room, ...] = ()
    ports: tuple[HeldPort, ...] = ()
    gpus: tuple[GpuMemory, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """A sentence about the host that bears on a cause: as it was when the attempt ended, or as it is now."""

    topic: Topic
    text: str
    when: Literal["end", "now"] = "end"
