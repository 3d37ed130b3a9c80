"""SGLang's own switching, asked for by `--speculative-adaptive` and a file beside the start (0.5.14 and newer).

The file names every number of steps that may come into force, so that the engine keeps graphs and buffers for each; which of them
is in force is decided by the plugin. Without it they are a bare threshold: what the user wished, but it flaps.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from vigil.preflight.command import Command
from vigil.preflight.finding import Edit
from vigil.preflight.ranks import PIPELINE, attention_data, size, whole

ALGORITHM, STEPS, TOP_K, TOKENS = (
    "--speculative-algorithm",
    "--speculative-num-steps",
    "--speculative-eagle-topk",
    "--speculative-num-draft-tokens",
)
ADAPTIVE, CONFIG = "--speculative-adaptive", "--speculative-adaptive-config"
ALGORITHMS = ("EAGLE", "EAGLE3")
RUNNING = "--max-running-requests"
MOST_RUNNING = 48
"""What SGLang sets `--max-running-requests` to under EAGLE where it is not given (sglang#34290)."""
NEVER = 1 << 20
"""A batch size that no server reaches: of a k that only somebody's word brings into force."""


def sglang_k(command: Command, refuse: Callable[[str], NoReturn]) -> int:
    """Return the steps that the command drafts; refuse where that cannot be switched."""
    algorithm = (command.text(ALGORITHM) or "").upper()
    if not algorithm:
        refuse(f"the command asks for no speculation ({ALGORITHM} EAGLE3)")
    if algorithm not in ALGORITHMS:
        refuse(f"SGLang switches {' and '.join(ALGORITHMS)} alone, and the command asks for {algorithm[:40]}")
    if command.last(ADAPTIVE, CONFIG) is not None:
        refuse(f"the command has {ADAPTIVE} of its own: leave one of them out")
    k, top_k = whole(command, STEPS), whole(command, TOP_K)
    if k is None or k < 1:
        refuse(f"the command does not say how many steps to draft: give {STEPS} 3 {TOP_K} 1")
    if top_k != 1:
        given = "is not given, and is more than 1 for some models" if top_k is None else f"is {top_k}"
        refuse(f"{TOP_K} {given}: SGLang switches chains alone; give {TOP_K} 1")
    tokens = whole(command, TOKENS)
    if tokens is not None and tokens != k + 1:
        refuse(f"{TOKENS} is {tokens}: a chain of {k} steps has {k + 1}")
    if attention_data(command) > 1:
        refuse("SGLang does not switch with attention data parallel, since its ranks could differ")
    if size(command, PIPELINE) > 1:
        refuse("SGLang does not switch with pipeline parallel")
    return k


def sglang_command(
    command: Command, held: dict[str, Any], place: str, refuse: Callable[[str], NoReturn]
) -> tuple[Edit, ...]:
    """Return the edits that ask SGLang for the schedule's steps, which it reads in the file `place`."""
    running = whole(command, RUNNING)
    least = next((tier["above"] for tier in held["tiers"][1:]), 0)
    if least >= (running or MOST_RUNNING):
        why = (
            f"{RUNNING} is {running}"
            if running
            else f"SGLang lets {MOST_RUNNING} run at once unless {RUNNING} says otherwise"
        )
        refuse(f"more than {least:g} running requests are never reached: {why}")
    last = command.last(STEPS)
    if last is None:
        raise ValueError("there is nothing to edit")
    return (Edit(at=last.at + last.count, put=(ADAPTIVE, CONFIG, place)),)


def adaptive_of(held: dict[str, Any], every_k: list[int]) -> dict[str, Any]:
    """Return SGLang's adaptive configuration: a slot for each tier from its load on, and one for each k that none of them has."""
    found = {str(int(tier.get("above", 0)) + 1): {"candidate_steps": [tier["k"]]} for tier in held["tiers"]}
    missing = [k for k in every_k if k not in {tier["k"] for tier in held["tiers"]}]
    return found | {str(NEVER + n): {"candidate_steps": [k]} for n, k in enumerate(missing)}
