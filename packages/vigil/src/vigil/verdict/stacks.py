"""Where processes that seem stuck stand: when to look, and what they agree on (law 7)."""

import re
from collections import defaultdict

from msgspec.structs import replace

from vigil.engine_table import EngineTable
from vigil.fact_parts import ProcessStack
from vigil.facts import StacksSeen
from vigil.verdict.effects import DumpStacks
from vigil.verdict.state import Stacks, State
from vigil.verdict.view import View
from vigil.verdict.waiting import limit_s
from vigil.verdict.words import Evidence, Word

STUCK = frozenset({Word.STALLED, Word.UNHEALTHY})
SHARE = 0.75
"""Of the patience that has to pass before we look, so that the stacks are there when it is over."""
SHOWN_FRAMES = 4
SHOWN_PROCESSES = 4
NAME_CHARS = 60
_FRAME = re.compile(r"(?P<function>.*) \((?P<file>.*):(?P<line>\d+)\)\Z")
_HELPER = "multiprocessing/resource_tracker.py"
"""Python's own process beside those that share memory; it waits for ever."""
_PLUMBING = frozenset(
    {
        "threading.py",
        "queue.py",
        "queues.py",
        "selectors.py",
        "subprocess.py",
        "socket.py",
        "connection.py",
        "runners.py",
    }
)
"""Python's own files in which everything waits: where a process stands is said by whoever called them."""
_STATES = {"D": "waits for a disk or a driver", "T": "is stopped", "t": "is stopped by a debugger"}


def ask(view: View) -> DumpStacks | None:
    """Return the order to look, once the processes have been without progress for most of what they may."""
    since_s = _quiet_since_s(view)
    if since_s is None:
        return None
    asked_s = view.state.stacks.asked_s
    return DumpStacks() if asked_s is None or asked_s < since_s else None


def note(state: State) -> State:
    """Remember that the look was ordered."""
    return replace(state, stacks=Stacks(asked_s=state.now_s))


def on_stacks_seen(state: State, fact: StacksSeen, _table: EngineTable) -> State:
    """Keep what was seen."""
    return replace(state, stacks=replace(state.stacks, seen=fact, seen_fact=state.n))


def evidence(state: State) -> tuple[Evidence, ...]:
    """Return what the processes agree on, and who stands elsewhere; nothing where they moved since."""
    seen, asked_s = state.stacks.seen, state.stacks.asked_s
    if seen is None or asked_s is None or asked_s < state.movement.at_s:
        return ()
    texts = [*_agreed(seen.stacks), *_strange(seen.stacks)]
    if not texts and seen.error:
        texts = [f"stacks: none ({seen.error})"]
    return tuple(Evidence(text=text, fact=state.stacks.seen_fact) for text in texts)


def _quiet_since_s(view: View) -> float | None:
    """Return since when nothing came, where that is long enough to look and there is a process to look at."""
    state = view.state
    now, life = state.serving, state.process.life
    if life is None or life.pid is None or state.stop_by is not None:
        return None
    flows = state.flow.alive_s
    if now.unanswered_s is not None and (flows is None or flows < now.unanswered_s):
        ready = now.ready_s is not None
        patience_s = view.policy.token_timeout_s if ready else view.policy.token_patience_s
        return now.unanswered_s if view.passed(now.unanswered_s + SHARE * patience_s) else None
    if now.ready_s is not None:
        return None
    return state.movement.at_s if view.passed(state.movement.at_s + SHARE * limit_s(view)) else None


def _agreed(stacks: tuple[ProcessStack, ...]) -> list[str]:
    """Say where most processes stand, then the others: in a hang, the one that is not there is the cause."""
    places: dict[str, list[ProcessStack]] = defaultdict(list)
    for stack in stacks:
        if stack.frames and not any(_HELPER in frame for frame in stack.frames):
            places[_place(stack)].append(stack)
    told = sorted(places.items(), key=lambda item: -len(item[1]))
    everyone = sum(len(where) for _, where in told)
    if everyone == 1:
        stack = told[0][1][0]
        return [f"stack of {_name(stack)}: {_path(stack)}"]
    texts = []
    for place, where in told[:SHOWN_PROCESSES]:
        if len(where) == 1:
            texts.append(f"stacks: {_name(where[0])} is in {place}")
            continue
        names = ", ".join(_name(stack) for stack in where[:SHOWN_PROCESSES])
        more = ", ..." if len(where) > SHOWN_PROCESSES else ""
        texts.append(f"stacks: {len(where)} of {everyone} processes are in {place}: {names}{more}")
    return texts


def _strange(stacks: tuple[ProcessStack, ...]) -> list[str]:
    """Say what the kernel tells of processes that neither run nor sleep as others do."""
    return [
        f"{_name(stack)} {_STATES[stack.state]}{f' ({stack.waits_in})' if stack.waits_in else ''}"
        for stack in stacks
        if stack.state in _STATES
    ][:SHOWN_PROCESSES]


def _place(stack: ProcessStack) -> str:
    """Return the innermost frame that is not Python's own waiting, without its line: ranks differ in that by little."""
    frame = next((one for one in stack.frames if _file(one) not in _PLUMBING), stack.frames[0])
    match = _FRAME.match(frame)
    return f"{match['function']} ({match['file']})" if match else frame


def _path(stack: ProcessStack) -> str:
    return " < ".join(stack.frames[:SHOWN_FRAMES])


def _file(frame: str) -> str:
    match = _FRAME.match(frame)
    return match["file"].rpartition("/")[2] if match else ""


def _name(stack: ProcessStack) -> str:
    return f"pid {stack.pid} ({stack.name[:NAME_CHARS]})"
