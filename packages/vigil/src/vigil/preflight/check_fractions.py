"""Fractions of memory, and sizes that must be at least one: values that no model and no GPU can make right."""

from collections.abc import Iterator

from vigil.preflight.check_memory import FRACTION
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.pointed import pointed, with_value
from vigil.preflight.ranks import DATA, PIPELINE, TENSOR, whole

PERCENT = 100
_WANTED = {"sglang": "above 0 and below 1", "vllm": "above 0 and at most 1"}
# vllm 0.32: limits of pydantic in config/scheduler.py and config/parallel.py. sglang 0.5.23: managers/tp_worker.py asserts that
# max_running_requests > 0, arg_groups/validation_hook.py takes the chunk modulo the page.
_AT_LEAST_ONE = {
    "sglang": ("--max-running-requests", "--page-size"),
    "vllm": ("--max-num-seqs", "--max-num-batched-tokens"),
}


def check_fractions(command: Command) -> Iterator[Finding]:
    """Find fractions outside of what there is, and sizes below one."""
    names = FRACTION.get(command.engine)
    if names is None:
        return
    given, value = command.last(*names), command.number(*names)
    if given is not None and value is not None and (value <= 0 or value > 1):
        right = f"{value / PERCENT:g}" if 1 < value < PERCENT else None
        yield pointed(
            given,
            "FLAG003",
            Severity.FATAL,
            f"{given.name} {value:g} is a fraction of the GPU's memory: {_WANTED[command.engine]}",
            f"{given.name} {right}" if right else f"{given.name} 0.9, or leave it out",
            edits=with_value(given, right) if right else (),
            seen="vllm 0.32, config/cache.py; sglang 0.5.23 takes any number, and then allocates by it",
        )
    elif given is not None and value == 1 and command.engine == "sglang":
        text = f"{given.name} 1 leaves nothing for activations and graphs, which come on top of weights and cache"
        yield pointed(
            given, "FLAG003", Severity.WARNING, text, "0.9 or less", seen="sglang 0.5.23, arg_groups/memory_hook.py"
        )
    for one in (*_AT_LEAST_ONE[command.engine], TENSOR[command.engine], PIPELINE[command.engine], DATA[command.engine]):
        yield from _at_least_one(command, (one,) if isinstance(one, str) else one)


def _at_least_one(command: Command, names: tuple[str, ...]) -> Iterator[Finding]:
    given, value = command.last(*names), whole(command, *names)
    if given is not None and value is not None and value < 1:
        text = f"{given.name} {value} must be at least 1"
        yield pointed(
            given,
            "FLAG003",
            Severity.FATAL,
            text,
            "give it a number from 1 on, or leave it out",
            seen="see the engine's config",
        )
