"""When a start-up counts as stuck, and what could be seen of it (law 7): slow is not stuck, and busy cores are no progress."""

import msgspec

from vigil.engine_table import EngineTable
from vigil.screen import duration
from vigil.verdict.state import State
from vigil.verdict.words import Evidence


class Quiet(msgspec.Struct, frozen=True, kw_only=True):
    """A stall that was found."""

    reason: str
    evidence: tuple[Evidence, ...]


def limit_s(state: State, table: EngineTable) -> float:
    """Return how long the present phase may be quiet: three times its longest in earlier starts, else its default."""
    asked = state.asked
    policy = asked.policy
    phase = state.startup.phase
    known_s = asked.slowest_quiet_s.get(phase.value)
    if known_s is not None:
        return max(policy.stall_floor_s, policy.stall_factor * known_s)
    default_s = table.silent_s.get(phase)
    return policy.silent_s if default_s is None else default_s * asked.time_scale


def found(state: State, table: EngineTable) -> Quiet | None:
    """Return the stall, if the present phase has been quiet for too long."""
    quiet_s = state.now_s - state.movement.at_s
    allowed_s = limit_s(state, table)
    if quiet_s <= allowed_s or (state.process.life is None and state.process.ended):
        return None
    spins = spinning(state)
    how = "spinning without progress" if spins else "quiet"
    reason = f"stuck in {state.startup.phase} ({how} for {duration(quiet_s)}, {duration(allowed_s)} allowed)"
    return Quiet(reason=reason, evidence=tuple(Evidence(text=text) for text in _seen(state, quiet_s, spins=spins)))


def spinning(state: State) -> bool:
    """Say whether cores were busy over the last two samples."""
    now, before = state.movement.last, state.movement.before
    if now is None or before is None or now.at_s <= before.at_s:
        return False
    return (now.cpu_s - before.cpu_s) / (now.at_s - before.at_s) >= state.asked.policy.spinning_cpu


def _seen(state: State, quiet_s: float, *, spins: bool) -> list[str]:
    log, last = state.log, state.movement.last
    texts = []
    if log.seen:
        since_s = state.now_s - (log.grew_s if log.grew_s is not None else 0.0)
        texts.append(f"log: no new line for {duration(since_s)} ({log.size} bytes)")
    elif log.error:
        texts.append(f"log: cannot be seen ({log.error})")
    else:
        texts.append("log: none to be seen")
    if last is None:
        texts.append("processes: not to be seen from here")
        return texts
    texts.append(f"disk and pipes: nothing moved for {duration(quiet_s)}")
    texts.append(f"memory of {last.processes} processes: unchanged ({last.rss_bytes >> 20} MiB)")
    texts.append(
        "GPU memory: not to be seen"
        if last.gpu_bytes is None
        else f"GPU memory: unchanged ({last.gpu_bytes >> 20} MiB)"
    )
    texts.append("CPU: busy, which alone is not progress (spinning)" if spins else "CPU: idle")
    return texts
