"""What was seen, with the time at which it was seen: the only input of every decision.

A fact is past tense and carries `at_s`, seconds on the time line of one trace (it starts at 0 and never goes back, whatever the
clocks of the hosts do). The observer sends facts as JSON objects tagged by `kind`; a trace holds them one a line.
"""

from typing import Literal

import msgspec

from vigil.fact_parts import (
    Arguments,
    AttestedProcess,
    Drafted,
    EditedFile,
    GpuMemory,
    Holder,
    KernelLine,
    LiveClass,
    LoadedFile,
    ProcessStack,
    Room,
    Stray,
    Switching,
)


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True, omit_defaults=True):
    """Base of all facts. `at_s`: seconds since the trace began."""

    at_s: float


class Line(msgspec.Struct, frozen=True, array_like=True):
    """One line of the server's log, redacted. `number` counts newlines of the file from 1; updates of a bar share a number."""

    number: int
    text: str


class Reached(Fact, frozen=True, kw_only=True):
    """An observer began to report from the host. `boot_id` names the boot; `wall_s` is the host's clock (Unix seconds)."""

    boot_id: str
    host: str
    python: str
    wall_s: float


class Lost(Fact, frozen=True, kw_only=True):
    """Nothing was heard from the observer for longer than the policy allows, or the reach broke. The server may be well."""

    why: str
    final: bool = False


class Ticked(Fact, frozen=True, kw_only=True):
    """Time passed. Silence is a fact too; `wall_s` is the host's clock, only for showing."""

    wall_s: float = 0.0


class Launched(Fact, frozen=True, kw_only=True):
    """Our launcher started the command. Times of its life are on its own host; `log_offset` is where this start's log begins.

    `attester`: it was put into the environment, for every Python of the server to load.
    """

    launcher_pid: int
    pid: int
    start_ticks: int
    log: str
    log_offset: int
    attester: bool = False


class Refused(Fact, frozen=True, kw_only=True):
    """Nothing was started; `text` says why.

    `what`: "port", it is taken; "command", it cannot be run there; "check", it would die of what `vigil check` found, whose first
    fatal finding has `code`, `cause_kind`, `title` and `advice`.
    """

    what: Literal["port", "command", "check"]
    text: str
    code: str = ""
    cause_kind: str = ""
    title: str = ""
    advice: str = ""


class MainStarted(Fact, frozen=True, kw_only=True):
    """The server's main process was seen: one attempt began.

    `wrapped`: it runs below a shell or supervisor whose own pid stays. `seen_late`: it ran already when we began to look.
    `sure`: its command is the engine's own, so that the process being the same proves that nothing restarted.
    `up_s`: how long it had run when it was seen.
    """

    pid: int
    start_ticks: int
    argv: tuple[str, ...] = ()
    wrapped: bool = False
    seen_late: bool = False
    sure: bool = False
    up_s: float = 0.0


class MainExited(Fact, frozen=True, kw_only=True):
    """The server's main process ended. Code and signal are None where the kernel tells them to its parent only."""

    pid: int
    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False


class RootExited(Fact, frozen=True, kw_only=True):
    """Everything that could start another attempt is gone.

    `asked_by`: who asked for the stop; `left`: orphans that had to be ended after it; `rebooted`: it went with its host.
    """

    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    asked_by: str | None = None
    left: int = 0
    rebooted: bool = False


class ChildStarted(Fact, frozen=True, kw_only=True):
    """A process of the server's tree appeared. `worker`: its title is one of the engine's workers."""

    pid: int
    name: str
    worker: bool = False


class ChildExited(Fact, frozen=True, kw_only=True):
    """A process of the server's tree ended while the main process lived."""

    pid: int
    name: str
    worker: bool = False
    lived_s: float = 0.0
    oom_killed: bool = False


class LogGrew(Fact, frozen=True, kw_only=True):
    """New bytes came to the log, which was read up to byte `size` of the file `inode`.

    `lines` may be fewer than were written: `skipped` counts those that could not matter. `history`: was there before we looked.
    """

    size: int
    lines: tuple[Line, ...] = ()
    skipped: int = 0
    history: bool = False
    inode: int = 0


class LogReset(Fact, frozen=True, kw_only=True):
    """The log began anew under the same name."""

    why: Literal["truncated", "rotated"]


class LogUnreadable(Fact, frozen=True, kw_only=True):
    """The log cannot be read; `error` is the system's word. `missing`: it is not there (yet)."""

    error: str
    missing: bool = False


class PortOpened(Fact, frozen=True, kw_only=True):
    """Something listens on the server's port. `owner`: `ours` (in the watched tree), `foreign`, or `unknown` (not to be seen)."""

    port: int
    owner: Literal["ours", "adopted", "foreign", "unknown"]
    pid: int | None = None
    name: str = ""


class PortClosed(Fact, frozen=True, kw_only=True):
    """Nothing listens on the server's port any more."""

    port: int


class ProbeAnswered(Fact, frozen=True, kw_only=True):
    """A standing HTTP probe had a new outcome, or the same again (`repeats` times since the last report).

    `status` is the HTTP code, or None with `error` ("refused", "timeout", "reset", ...). `models` are the ids that a model list
    named. `body`: the first characters, for people.
    """

    probe: str
    status: int | None = None
    error: str | None = None
    latency_s: float = 0.0
    repeats: int = 1
    models: tuple[str, ...] = ()
    body: str = ""
    location: str = ""
    server_started: str = ""


class TokenAnswered(Fact, frozen=True, kw_only=True):
    """A real completion was asked for. `tokens` is the count in the reply, None where the reply carries no count."""

    status: int | None = None
    error: str | None = None
    tokens: int | None = None
    latency_s: float = 0.0
    model: str = ""
    body: str = ""
    keyed: bool = False


class MetricsSeen(Fact, frozen=True, kw_only=True):
    """The server's own counters: requests running and waiting, tokens generated since its start."""

    running: float | None = None
    waiting: float | None = None
    tokens_total: float | None = None


class Sampled(Fact, frozen=True, kw_only=True):
    """Resources of the whole tree, summed. Bytes are counters; `gpu_bytes` is the tree's memory on GPUs, where that is told."""

    cpu_s: float
    io_bytes: int
    rss_bytes: int
    processes: int
    gpu_bytes: int | None = None
    gpu_busy: float | None = None


class StacksSeen(Fact, frozen=True, kw_only=True):
    """Processes that seemed stuck were looked at. `error`: why there are no frames, where there are none."""

    stacks: tuple[ProcessStack, ...] = ()
    error: str = ""


class Attested(Fact, frozen=True, kw_only=True):
    """The server's processes said what they really run. `error`: they could not be asked.

    `instead`: of modules and files that were asked for and nobody has, what is loaded and called alike.
    """

    processes: tuple[AttestedProcess, ...] = ()
    edited: tuple[EditedFile, ...] = ()
    files: tuple[LoadedFile, ...] = ()
    strays: tuple[Stray, ...] = ()
    instead: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    classes: tuple[LiveClass, ...] = ()
    arguments: tuple[Arguments, ...] = ()
    switching: tuple[Switching, ...] = ()
    served: Arguments | None = None
    error: str = ""


class SpeculationMeasured(Fact, frozen=True, kw_only=True):
    """A few real prompts were answered. `source`: where the numbers come from; "": nothing told of drafts."""

    answers: tuple[Drafted, ...] = ()
    source: str = ""
    error: str = ""


class KernelSaid(Fact, frozen=True, kw_only=True):
    """The kernel wrote to its log what could explain an end."""

    lines: tuple[KernelLine, ...]


class RoomSeen(Fact, frozen=True, kw_only=True):
    """When an attempt ended, so much room was left where the server writes."""

    rooms: tuple[Room, ...]


class PortHeld(Fact, frozen=True, kw_only=True):
    """Another program was seen to listen on the server's port."""

    port: int
    holders: tuple[Holder, ...]


class GpusSeen(Fact, frozen=True, kw_only=True):
    """When an attempt ended, the GPUs' memory had been held so at the last look."""

    gpus: tuple[GpuMemory, ...]


class StopAsked(Fact, frozen=True, kw_only=True):
    """Somebody asked for a stop (`by`: user@host)."""

    by: str


class Troubled(Fact, frozen=True, kw_only=True):
    """The watcher itself could not do something (`what`), e.g. a full disk under the state folder."""

    what: str


AnyFact = (
    Reached
    | Lost
    | Ticked
    | Launched
    | Refused
    | MainStarted
    | MainExited
    | RootExited
    | ChildStarted
    | ChildExited
    | LogGrew
    | LogReset
    | LogUnreadable
    | PortOpened
    | PortClosed
    | ProbeAnswered
    | TokenAnswered
    | MetricsSeen
    | Sampled
    | StacksSeen
    | Attested
    | SpeculationMeasured
    | KernelSaid
    | RoomSeen
    | PortHeld
    | GpusSeen
    | StopAsked
    | Troubled
)
