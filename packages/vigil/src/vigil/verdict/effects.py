"""What must be done next: returned by `step`, carried out by the loop with effects. Orders stand until they change."""

import msgspec

from vigil.engine_table import EngineTable
from vigil.verdict.state import State
from vigil.verdict.words import SERVING


class Probe(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask `path` again and again; `every_s` 0 ends it."""

    probe: str
    path: str
    every_s: float
    timeout_s: float


class ReadMetrics(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read the server's counters again and again; `every_s` 0 ends it."""

    every_s: float


class Look(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """How often the observer looks at log, process tree and resources; seconds."""

    log_s: float
    tree_s: float
    sample_s: float


class Keep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ship only log lines that hold one of these texts; None: all."""

    texts: tuple[str, ...] | None


class AskToken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask for one completion of `tokens` tokens after `delay_s`."""

    tokens: int
    timeout_s: float
    delay_s: float
    model: str


class DumpStacks(msgspec.Struct, frozen=True, tag=True):
    """Look at where the server's processes stand, once."""


class Attest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Ask the server's processes what they run, once; of these modules, files and classes in any case.

    `arguments`: and what the engine's arguments came to, its address as well.
    """

    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    arguments: bool = False
    patience_s: float = 3.0


class MeasureSpeculation(msgspec.Struct, frozen=True, tag=True):
    """Have a few real prompts answered, and see how many tokens each step of the target makes."""


Order = Probe | ReadMetrics | Look | Keep
Effect = Order | AskToken | DumpStacks | Attest | MeasureSpeculation

MATTERS = (
    "rror",
    "Traceback",
    "xception",
    "atal",
    "FATAL",
    "ERR",
    "OOM",
    "out of memory",
    "abort",
    "SIG",
    "Killed",
    "died",
    "crash",
    "ASSERT",
)


def standing_orders(state: State, table: EngineTable) -> tuple[Order, ...]:
    """Return the orders that should stand in this state, always of the same kinds and in the same sequence."""
    scale = state.asked.time_scale
    policy = state.asked.policy
    up = state.serving.ready_s is not None
    look = _look(scale, up=up)
    keep = Keep(texts=_kept_texts(table) if up else None)
    if state.asked.job or not state.asked.serves:
        return (look, keep)
    known = state.judged.word in SERVING  # it answers, and is not ready for us: a key that we lack
    models_s = 0.0 if up else policy.health_every_s if known or _is_another_kind(state) else policy.probe_every_s
    models = Probe(probe="models", path=table.models_path, every_s=models_s, timeout_s=10.0)
    # Before the first token too: it may be late because others are served (law 9).
    counted = up or state.serving.unanswered_s is not None
    metrics = ReadMetrics(every_s=policy.metrics_every_s if counted else 0.0)
    return (look, keep, models, _health(state, table, up=up), metrics)


def _is_another_kind(state: State) -> bool:
    """Say whether its answers are those of something that does not load a model: asking often would only fill its log."""
    models = state.serving.models
    return models is not None and models.status is not None and 300 <= models.status < 500  # noqa: PLR2004 - HTTP


def _look(scale: float, *, up: bool) -> Look:
    """Look often while it starts. Once it serves, ends are told by the kernel and the rest may come with the heartbeat."""
    if up:
        return Look(log_s=min(1.0, max(0.25, scale)), tree_s=min(2.0, max(1.0, 2 * scale)), sample_s=5.0)
    return Look(log_s=0.02, tree_s=0.25, sample_s=max(0.1, scale))


def _kept_texts(table: EngineTable) -> tuple[str, ...]:
    """Return what makes a line matter once the server is up."""
    return (*MATTERS, *table.alive_lines, *table.banners, *table.ready_lines, *table.fatal_lines)


def _health(state: State, table: EngineTable, *, up: bool) -> Probe:
    """Health is asked where it costs nothing, or where it is all that was asked for."""
    policy = state.asked.policy
    wanted = state.asked.ready == "http" or not table.health_costs_token
    pace_s = policy.health_every_s if up else max(policy.probe_every_s, 0.2 * state.asked.time_scale)
    return Probe(
        probe="health",
        path=table.health_path,
        every_s=pace_s if wanted else 0.0,
        timeout_s=max(1.0, policy.token_timeout_s + 5.0),
    )
