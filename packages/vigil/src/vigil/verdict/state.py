"""All that is remembered between two facts. Frozen: `step` makes a new one; parts that did not change are shared."""

from typing import Literal

import msgspec

from vigil.diagnosis.cause import Cause
from vigil.engine_table import Phase
from vigil.facts import Line, MetricsSeen, PortOpened, ProbeAnswered, RootExited, Sampled, TokenAnswered
from vigil.policy import Policy
from vigil.verdict.words import Evidence, PhaseSpan, Word


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
    log: str | None = None
    host: str = "here"
    url: str | None = None
    policy: Policy = Policy()
    time_scale: float = 1.0
    slowest_quiet_s: dict[str, float] = msgspec.field(default_factory=dict)
    expected_s: float | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Our connection to the host."""

    boot_id: str = ""
    reached_s: float | None = None
    lost_s: float | None = None
    lost_why: str = ""
    final: bool = False
    times_lost: int = 0


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in full. `opened`: its first banner was seen; `sure`: its process proves that nothing restarted."""

    n: int
    started_s: float
    pid: int | None = None
    start_ticks: int = 0
    wrapped: bool = False
    sure: bool = False
    opened: bool = False
    ended_s: float | None = None
    ended_fact: int = 0
    ready_s: float | None = None
    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    why: Cause | None = None
    phase: Phase | None = None
    by_log: bool = False


class WorkerDeath(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the engine ended while the main one lived."""

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
    seen: bool = False


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """The log as far as it was read. `chunks` hold the lines of the present attempt, for the diagnosis."""

    size: int = 0
    inode: int = 0
    line: int = 0
    seen: bool = False
    chunks: tuple[tuple[Line, ...], ...] = ()
    last: str = ""
    grew_s: float | None = None
    error: str = ""
    missing: bool = False
    ready_fact: int = 0
    fatal_s: float | None = None
    opening: tuple[str, ...] = ()


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """Where the present attempt's start-up is."""

    phase: Phase = Phase.LAUNCHING
    since_s: float = 0.0
    spans: tuple[PhaseSpan, ...] = ()
    progress: tuple[int, int] | None = None
    quiet_s: dict[str, float] = msgspec.field(default_factory=dict)


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """What the server's address answers. `asked_s`: a token request is under way since then."""

    port: PortOpened | None = None
    port_fact: int = 0
    port_s: float | None = None
    models: ProbeAnswered | None = None
    models_s: float | None = None
    models_fact: int = 0
    health: ProbeAnswered | None = None
    health_fact: int = 0
    health_bad_s: float | None = None
    token: TokenAnswered | None = None
    token_fact: int = 0
    token_s: float | None = None
    asked_s: float | None = None
    asked_ever_s: float | None = None
    fails: int = 0
    fail_s: float | None = None
    level: str | None = None
    ready_s: float | None = None
    ready_fact: int = 0
    metrics: MetricsSeen | None = None
    alive_s: float | None = None
    ours_since_metrics: int = 0


class Movement(msgspec.Struct, frozen=True, kw_only=True):
    """The last sign of progress, and the counters as they stood then."""

    at_s: float = 0.0
    what: str = "the start"
    at: Sampled | None = None
    last: Sampled | None = None
    before: Sampled | None = None


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a state."""

    word: Word = Word.STARTING
    reason: str = ""
    level: str | None = None
    cause: Cause | None = None
    evidence: tuple[Evidence, ...] = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything between two facts. `n` counts facts, from 1; `now_s` is the time of the last one."""

    asked: Asked = Asked()
    n: int = 0
    now_s: float = 0.0
    link: Link = Link()
    process: Process = Process()
    log: Log = Log()
    startup: Startup = Startup()
    serving: Serving = Serving()
    movement: Movement = Movement()
    orders: tuple[object, ...] = ()
    judged: Judgement = Judgement()
    stop_by: str | None = None
    troubles: tuple[str, ...] = ()
