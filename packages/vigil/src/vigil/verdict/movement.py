"""Signs of progress: what counts as movement, and how long each phase was quiet before it (law 7)."""

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.facts import Sampled
from vigil.verdict.state import Movement, State

SHORTEST_QUIET_S = 1.0


def on_sampled(state: State, fact: Sampled, _table: EngineTable) -> State:
    """Bytes or memory that moved are progress; CPU alone is not (law 7)."""
    was = state.movement
    what = _what_moved(state, was.base, fact) if was.base is not None else None
    if what is not None:
        return moved(state, what, fact)
    movement = Movement(at_s=was.at_s, what=was.what, base=was.base or fact, last=fact, before=was.last)
    return replace(state, movement=movement)


def _what_moved(state: State, base: Sampled, fact: Sampled) -> str | None:
    policy = state.asked.policy
    if abs(fact.io_bytes - base.io_bytes) >= policy.io_moved_bytes + _ours_bytes(state, fact.at_s - base.at_s):
        return "bytes were read or written"
    if abs(fact.rss_bytes - base.rss_bytes) >= policy.memory_moved_bytes:
        return "memory of the processes changed"
    if fact.gpu_bytes is None or base.gpu_bytes is None:
        return None
    return "GPU memory changed" if abs(fact.gpu_bytes - base.gpu_bytes) >= policy.memory_moved_bytes else None


def _ours_bytes(state: State, span_s: float) -> float:
    """Return how many bytes a server may have moved for answering us: that is no progress of its own.

    Two standing probes, each answer worth `io_moved_bytes` with its access line; none before it answers at all.
    """
    serving = state.serving
    models, health = serving.models, serving.health
    if (models is None or models.status is None) and (health is None or health.status is None):
        return 0.0
    policy = state.asked.policy
    return 2 * policy.io_moved_bytes * span_s / policy.probe_every_s


def moved(state: State, what: str, sample: Sampled | None = None) -> State:
    """Note progress, and how long this phase had been quiet before it. `sample`: a new one, where it shows the progress."""
    was = state.movement
    last, before = (was.last, was.before) if sample is None else (sample, was.last)
    movement = Movement(at_s=state.now_s, what=what, base=last, last=last, before=before)
    quiet_s = state.now_s - was.at_s
    if quiet_s <= SHORTEST_QUIET_S or state.serving.ready_s is not None:
        return replace(state, movement=movement)
    startup = state.startup
    phase = startup.phase.value
    if quiet_s > startup.quiet_s.get(phase, 0.0):
        startup = replace(startup, quiet_s={**startup.quiet_s, phase: quiet_s})
    return replace(state, movement=movement, startup=startup)
