"""All that is remembered between two facts. Frozen: `step` makes a new one; parts that did not change are shared."""

from typing import Literal

import msgspec

from vigil.diagnosis.cause import Cause
from vigil.diagnosis.seen import Seen
from vigil.engine_table import Phase
from vigil.fact_parts import KernelLine
from vigil.facts import (
    Attested,
    Line,
    MetricsSeen,
    PortOpened,
    ProbeAnswered,
    Refused,
    RootExited,
    Sampled,
    SpeculationMeasured,
    StacksSeen,
    TokenAnswered,
)
from vigil.policy import Policy
from vigil.verdict.expected import Expectation
from vigil.verdict.words import Evidence, PhaseSpan, Word

Chunks = tuple[tuple[Line, ...], ...]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan wants of the server, as far as a verdict depends on it.

    `serves`: it has an address to be probed. `slowest_quiet_s` and `expected_s` come from earlier starts of the same plan.
    """

    name: str = ""
    job: bool = False
    ready: Literal["token", "http", "log"] = "token"
    serves: bool = True
    model: str | None = None
    speculation: bool = False
    expect: tuple[Expectation, ...] = ()
    log: str | None = None
    host: str = "here"
    url: str | None = None
    policy: Policy = Policy()
    time_scale: float = 1.0
    slowest_quiet_s: dict[str, float] = msgspec.field(default_factory=dict)
    expected_s: float | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Our connection to the host. `first_s`: when the first observer began to report. `clock_s`: the host's clock at our 0."""

    boot_id: str = ""
    first_s: float | None = None
    reached_s: float | None = None
    lost_s: float | None = None
    lost_why: str = ""
    final: bool = False
    times_lost: int = 0
    clock_s: float = 0.0


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What the host showed beside the log. `facts`: the number of the fact behind each of its topics.

    `kernel`: its lines while the attempt lives, each with the time at which it was read; at the end they join `seen`.
    """

    seen: Seen = Seen()
    kernel: tuple[tuple[float, KernelLine], ...] = ()
    facts: dict[str, int] = msgspec.field(default_factory=dict)


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in full.

    `opened`: its first banner was seen, at `banner_s`. `sure`: its process proves that nothing restarted. `shed`: a child that
    was there at its banner has ended since. `wrapped`: a shell or supervisor above it can start another. `late`: it ran
    before we looked, so that what the log held then may be its own. `command`: its command line without numbers. `by_log`:
    only the log showed its beginning. `asked`: its end was asked for. `tail`: its last lines, once it has ended. `around`: what
    its host showed then; `told`: what of that bears on its cause.
    """

    n: int
    started_s: float
    pid: int | None = None
    start_ticks: int = 0
    sure: bool = False
    wrapped: bool = False
    late: bool = False
    opened: bool = False
    banner_s: float | None = None
    shed: bool = False
    by_log: bool = False
    command: str = ""
    ready_s: float | None = None
    ended_s: float | None = None
    ended_fact: int = 0
    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    asked: bool = False
    why: Cause | None = None
    phase: Phase | None = None
    tail: tuple[Line, ...] = ()
    around: Around = Around()
    told: tuple[Evidence, ...] = ()


class WorkerDeath(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the engine ended while the main one lived. `known`: its title is one of the engine's workers."""

    at_s: float
    pid: int
    name: str
    fact: int
    known: bool
    oom_killed: bool = False


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """The server's processes: attempts that ended, the one that lives, and what befell the root."""

    ended: tuple[Life, ...] = ()
    life: Life | None = None
    root: RootExited | None = None
    root_fact: int = 0
    worker: WorkerDeath | None = None
    refused: Refused | None = None
    seen: bool = False


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What the log's lines amount to, as far as a verdict depends on it.

    `seen`: the log could be read. `fatal_s`: when the engine first said that it gives up; `fatal_old`: before we looked.
    """

    seen: bool = False
    error: str = ""
    missing: bool = False
    ready_fact: int = 0
    fatal_s: float | None = None
    fatal_fact: int = 0
    fatal_old: bool = False


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The log as far as it was read.

    `chunks` hold the lines since the last end of an attempt, for the diagnosis; `before` those of the attempt before it.
    `old`: some were there before we looked. `opening`: the shapes of the first lines of the last life. `reset`: the file
    began anew and nothing came since.
    """

    size: int = 0
    inode: int = 0
    line: int = 0
    last: str = ""
    grew_s: float | None = None
    chunks: Chunks = ()
    before: Chunks = ()
    old: bool = False
    opening: tuple[str, ...] = ()
    reset: bool = False
    signs: Signs = Signs()

    @property
    def seen(self) -> bool:
        """Say whether the log could be read."""
        return self.signs.seen

    @property
    def error(self) -> str:
        """Return why it cannot be read now; empty where it can."""
        return self.signs.error

    @property
    def missing(self) -> bool:
        """Say whether there is no such file (yet)."""
        return self.signs.missing


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """Where the present attempt's start-up is. `quiet_s`: the longest quiet of each phase that ended by itself, seconds."""

    phase: Phase = Phase.LAUNCHING
    since_s: float = 0.0
    spans: tuple[PhaseSpan, ...] = ()
    progress: tuple[int, int] | None = None
    quiet_s: dict[str, float] = msgspec.field(default_factory=dict)


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """What the server's address answers.

    `asked_s`: a token request is under way since then. `vain`: requests in a row that brought no token; `fails`: those of
    them that were answered wrongly, since `fail_s`. `unanswered_s`: since then no request has had any answer.
    `closed_s`: since then nobody listens. `server_started_s`: when the process that answers began, as it says (Unix seconds);
    `answered_s`: when it first said so.
    """

    port: PortOpened | None = None
    port_fact: int = 0
    port_s: float | None = None
    closed_s: float | None = None
    models: ProbeAnswered | None = None
    models_s: float | None = None
    models_fact: int = 0
    health: ProbeAnswered | None = None
    health_fact: int = 0
    health_s: float | None = None
    health_bad_s: float | None = None
    token: TokenAnswered | None = None
    token_fact: int = 0
    token_s: float | None = None
    asked_s: float | None = None
    unanswered_s: float | None = None
    vain: int = 0
    fails: int = 0
    fail_s: float | None = None
    level: str | None = None
    ready_s: float | None = None
    ready_fact: int = 0
    server_started_s: float | None = None
    answered_s: float | None = None


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that flow for others: when they were last seen to, and the server's counters.

    `ours_since_metrics`, `ours_before`: our own tokens since the counters were told, and between that and the time before.
    """

    alive_s: float | None = None
    metrics: MetricsSeen | None = None
    ours_since_metrics: int = 0
    ours_before: int = 0


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """The last sign of progress; `base`: the counters as they stood then; `last` and `before`: the last two samples."""

    at_s: float = 0.0
    what: str = "the start"
    base: Sampled | None = None
    last: Sampled | None = None
    before: Sampled | None = None


class Stacks(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processes stood when they were last looked at, which was ordered at `asked_s`; `seen_fact`: the fact's number."""

    asked_s: float | None = None
    seen: StacksSeen | None = None
    seen_fact: int = 0


class Attestation(msgspec.Struct, frozen=True, kw_only=True):
    """What the server's processes said that they run.

    `there`: our attester was put into them. They were asked at `asked_s`, in the life that became ready at `of_s`.
    """

    there: bool = False
    of_s: float | None = None
    asked_s: float | None = None
    seen: Attested | None = None
    seen_fact: int = 0
    measured: SpeculationMeasured | None = None
    measured_fact: int = 0


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a state."""

    word: Word = Word.STARTING
    reason: str = ""
    level: str | None = None
    cause: Cause | None = None
    evidence: tuple[Evidence, ...] = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything between two facts.

    `n` counts facts, from 1; `now_s` is the time of the last one. `next_s`: before then time alone changes nothing of the
    meaning. `engine`: the table that the meaning was found with. `waiting_s`: when the present start-up began for the
    user's patience (a server that was ready and died is waited for anew).
    """

    asked: Asked = Asked()
    n: int = 0
    now_s: float = 0.0
    next_s: float = 0.0
    engine: str = ""
    waiting_s: float = 0.0
    link: Link = Link()
    process: Process = Process()
    log: Log = Log()
    startup: Startup = Startup()
    serving: Serving = Serving()
    flow: Flow = Flow()
    movement: Movement = Movement()
    stacks: Stacks = Stacks()
    around: Around = Around()
    attestation: Attestation = Attestation()
    orders: tuple[object, ...] = ()
    judged: Judgement = Judgement()
    stop_by: str | None = None
    stop_s: float | None = None
    troubles: tuple[str, ...] = ()
