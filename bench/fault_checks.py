"""What else must be true of a row, beside the words of its verdicts: each check returns a problem in words, or None."""

import json
import time
from typing import Any

from fault_run import Run

Problem = str | None
# Far above the reach of `make bench`: it tells a verdict that waits for something from one that does not.
AT_ONCE_S = 1.5
SLACK_S = 1.0


def last(run: Run) -> dict[str, Any]:
    """Return the last verdict said, or an empty one."""
    return run.said[-1].verdict if run.said else {}


def check_gone(run: Run) -> Problem:
    """No process of the row's tree lives on."""
    left = run.left()
    return f"still there: {left}" if left else None


def check_port_free(run: Run) -> Problem:
    """Nobody listens on the row's port."""
    deadline_s = time.monotonic() + 2
    while run.port_held():
        if time.monotonic() > deadline_s:
            return f"port {run.port} is held"
        time.sleep(0.02)
    return None


def check_verified(run: Run) -> Problem:
    """Want the port's owner to be the watched tree."""
    owner = last(run).get("owner")
    return None if owner in {"verified", "adopted"} else f"owner {owner}"


def check_not_early(run: Run) -> Problem:
    """`ready` was not said before a token could be had."""
    tokens = run.marks("TOKENS")
    ready = [said.at_s for said in run.said if said.word == "ready"]
    if ready and (not tokens or ready[0] < tokens[0] - 0.01):
        return "ready before a token could be had"
    return None


def check_attempts(run: Run, number: int) -> Problem:
    """At least so many attempts were seen."""
    seen = max((len(said.verdict.get("attempts", ())) for said in run.said), default=0)
    return None if seen >= number else f"{seen} attempts seen"


def check_one_life(run: Run) -> Problem:
    """Want one start, whatever happened to its watcher."""
    born = len(run.marks("BORN"))
    return None if born == 1 else f"started {born} times"


def check_alive(run: Run) -> Problem:
    """Watching never kills: the stuck server is still there."""
    return None if run.processes() else "the server is gone"


def says(run: Run, *texts: str) -> Problem:
    """Want one of the texts in the verdict's words or our standard error."""
    told = f"{last(run)} {run.errors.read_text(errors='replace')}"
    return None if any(text in told for text in texts) else f"nothing about {texts[0]!r}"


def check_exit_7(run: Run) -> Problem:
    """Want the exit code, not lost with the connection."""
    exits = [attempt.get("exit") for attempt in last(run).get("attempts", ())]
    return None if 7 in exits else f"exits seen: {exits}"


def check_warned(run: Run) -> Problem:
    """Want a warning in the verdict."""
    return None if last(run).get("warnings") else "no warning"


def check_at_once(run: Run) -> Problem:
    """Want the verdict soon after the moment, or after we could first look: our own start is not what is judged here."""
    after_s = run.delay_s()
    if after_s is None:
        return None
    said_s = run.said[0].at_s
    after_s = min(after_s, said_s - first_look_s(run))
    return None if after_s <= AT_ONCE_S + run.s(SLACK_S) else f"{after_s:.1f} s after it could be had"


def first_look_s(run: Run) -> float:
    """Return the wall time at which the observer of the watcher that said it first reported, by its trace; 0 without one."""
    trace = run.second_trace if run.second_trace.exists() else run.trace
    if not trace.exists():
        return 0.0
    with trace.open("rb") as file:
        began_s = json.loads(file.readline())["began"]
        facts = (json.loads(line) for line in file)
        return next((began_s + fact["at_s"] for fact in facts if fact["kind"] == "Reached"), 0.0)


def check_one_line(run: Run) -> Problem:
    """Want one clear line and nothing else: what is wrong and what to do, no traceback."""
    lines = [line for line in run.errors.read_text(errors="replace").splitlines() if line.strip()]
    return None if len(lines) == 1 and lines[0].startswith("vigil: ") else f"not one line of ours: {lines[-3:]}"


def check_not_started(run: Run) -> Problem:
    """Want nothing started."""
    return "it was started" if run.marks("BORN") else None


CHECKS = {
    "gone": check_gone,
    "port_free": check_port_free,
    "verified": check_verified,
    "not_early": check_not_early,
    "attempts_2": lambda run: check_attempts(run, 2),
    "attempts_3": lambda run: check_attempts(run, 3),
    "attempts_3_here": lambda run: (
        None if run.where == "ssh" else check_attempts(run, 3)
    ),  # the first may be over before we arrive
    "one_life": check_one_life,
    "alive": check_alive,
    "exit_7": check_exit_7,
    "warned": check_warned,
    "says_oom": lambda run: says(run, "OOM killer"),
    "says_spinning": lambda run: says(run, "spinning"),
    "says_stack": lambda run: says(run, "stack of pid"),
    "says_died": lambda run: says(run, "died"),
    "says_resolve": lambda run: says(run, "does not resolve"),
    "says_python3": lambda run: says(run, "no python3"),
    "says_full": lambda run: says(run, "No space left", "disk is full"),
    "at_once": check_at_once,
    "one_line": check_one_line,
    "not_started": check_not_started,
}
