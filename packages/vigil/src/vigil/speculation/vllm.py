"""vLLM's own switching, asked for in its `--speculative-config`: `num_speculative_tokens_per_batch_size` (0.24 and newer).

Its ranges name every k that may come into force, so that the engine prepares for each (it captures a graph of each width); which
of them is in force is decided by the plugin. Without it they are a bare threshold: what the user wished, but it flaps.
"""

import json
from collections.abc import Callable
from typing import Any, NoReturn

from vigil.preflight import check_json
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit
from vigil.preflight.pointed import with_value
from vigil.preflight.ranks import DATA, size, whole

CONFIG = ("--speculative-config", "-sc")
TOKENS, RANGES = "num_speculative_tokens", "num_speculative_tokens_per_batch_size"
LARGEST = 1 << 16


def vllm_k(command: Command, refuse: Callable[[str], NoReturn]) -> int:
    """Return how many tokens a step the command drafts; refuse where that cannot be switched."""
    if any(one.plain.startswith("--speculative-config.") for one in command.flags):
        refuse("give --speculative-config as one JSON object: its dotted form cannot be added to")
    read = check_json.read(command, *CONFIG)
    if read is None:
        asked = command.last(*CONFIG) is not None
        refuse(
            "its --speculative-config cannot be read"
            if asked
            else "the command asks for no speculation (--speculative-config)"
        )
    ranks = size(command, DATA)
    if ranks > 1:
        refuse(
            f"vLLM does not switch with --data-parallel-size {ranks}, since its ranks could differ: start one server for each"
        )
    if read.value.get(RANGES):
        refuse(f"the command has {RANGES} of its own: leave one of them out")
    k = read.value.get(TOKENS)
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        refuse(f'its --speculative-config does not say how many tokens to draft ("{TOKENS}": 3)')
    return k


def vllm_command(command: Command, held: dict[str, Any], every_k: list[int]) -> tuple[Edit, ...]:
    """Return the edits that ask vLLM for the schedule's ranges."""
    read = check_json.read(command, *CONFIG)
    if read is None:
        raise ValueError("there is no configuration to edit")
    ranges = ranges_of(held, every_k, whole(command, "--max-num-seqs"))
    return with_value(read.given, json.dumps({**read.value, RANGES: ranges}))


def ranges_of(held: dict[str, Any], every_k: list[int], most: int | None) -> list[list[int]]:
    """Return vLLM's ranges [from, to, k]: those of the schedule, and at the end one batch size for each k that may be in force.

    vLLM captures graphs of a k up to the widest batch that its ranges give it (0.32, config/vllm.py), and the plugin may have a k
    in force at any: `most`, the requests that may run at once, makes each as wide as can be.
    """
    tiers = held["tiers"]
    ends = [int(tier["above"]) for tier in tiers[1:]]
    last = (most or LARGEST) - len(every_k)
    found, begin = [], 1
    for tier, end in zip(tiers, [*ends, last], strict=True):
        if begin <= min(end, last):
            found.append([begin, min(end, last), tier["k"]])
            begin = min(end, last) + 1
    tail = [tiers[-1]["k"], *(k for k in every_k if k != tiers[-1]["k"])][::-1]
    for k in tail:
        found.append([begin, begin, k])
        begin += 1
    found[-1][1] = max(LARGEST, begin)
    return found
