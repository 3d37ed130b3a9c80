"""What the host showed beside the log: kept until the attempt that it is about has ended."""

from typing import Any

from msgspec.structs import replace

from vigil.diagnosis.bearing import kernel_words
from vigil.diagnosis.seen import HeldPort, Seen, Told, Topic
from vigil.engine_table import EngineTable
from vigil.facts import GpusSeen, KernelSaid, PortHeld, RoomSeen
from vigil.verdict.state import Around, State
from vigil.verdict.words import Evidence

KEPT_LINES = 16


def on_kernel_said(state: State, fact: KernelSaid, _table: EngineTable) -> State:
    """Keep what the kernel wrote, with what it wrote before in this life."""
    around = state.around
    kernel = (*around.kernel, *((fact.at_s, line) for line in fact.lines))[-KEPT_LINES:]
    return replace(state, around=replace(around, kernel=kernel, facts={**around.facts, "kernel": state.n}))


def on_room_seen(state: State, fact: RoomSeen, _table: EngineTable) -> State:
    """Keep how much room there is."""
    return _keep(state, "rooms", fact.rooms)


def on_port_held(state: State, fact: PortHeld, _table: EngineTable) -> State:
    """Keep who holds the port: until it is told otherwise, also beyond this life."""
    return _keep(state, "ports", (HeldPort(port=fact.port, holders=fact.holders),))


def on_gpus_seen(state: State, fact: GpusSeen, _table: EngineTable) -> State:
    """Keep who holds the GPUs' memory."""
    return _keep(state, "gpus", fact.gpus)


def _keep(state: State, topic: Topic, value: tuple[Any, ...]) -> State:
    around = state.around
    seen = replace(around.seen, **{topic: value})
    return replace(state, around=replace(around, seen=seen, facts={**around.facts, topic: state.n}))


def at_the_end(around: Around, now_s: float) -> Around:
    """Return it as an attempt that ends now has it: the kernel's lines say how long before the end they were written."""
    kernel = tuple(replace(line, ago_s=round(line.ago_s + now_s - at_s, 3)) for at_s, line in around.kernel)
    return replace(around, seen=replace(around.seen, kernel=kernel), kernel=())


def after_an_end(around: Around) -> Around:
    """Return what the next life has of it: whoever holds the port goes on."""
    ports = {topic: fact for topic, fact in around.facts.items() if topic == "ports"}
    return Around(seen=Seen(ports=around.seen.ports), facts=ports)


def without_port(around: Around) -> Around:
    """Return it without who holds the port: nobody, or somebody else."""
    return replace(around, seen=replace(around.seen, ports=())) if around.seen.ports else around


def kill_of(around: Around, pid: int, died_s: float) -> tuple[Evidence, ...]:
    """Return the kernel's line on its kill of a process that died then, while the attempt goes on."""
    kills = [line for line in at_the_end(around, died_s).seen.kernel if line.what == "oom_kill" and line.pid == pid]
    return evidence(around, tuple(Told("kernel", kernel_words(line, "before that")) for line in kills[-1:]))


def evidence(around: Around, told: tuple[Told, ...]) -> tuple[Evidence, ...]:
    """Return what was told of it, with the facts that show it."""
    return tuple(Evidence(text=one.text, fact=around.facts.get(one.topic)) for one in told)
