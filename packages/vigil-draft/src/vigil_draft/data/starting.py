"""The command line that starts an engine with a target: what stands before the target, and what the user adds."""

import shlex
from collections.abc import Sequence

from vigil.errors import UsageError

PROGRAMS = {"vllm": "vllm serve", "sglang": "python3 -m sglang.launch_server --model-path"}


def starting(engine: str, program: str | None, words: Sequence[str]) -> tuple[str, ...]:
    """Return the command line: what starts the engine, then words, the first of them the target.

    Raises:
        UsageError: The engine is not known, or quotes in `program` are open.

    """
    if engine not in PROGRAMS:
        raise UsageError(f"--engine {engine}: give one of {', '.join(PROGRAMS)}")
    try:
        begun = shlex.split(program or PROGRAMS[engine])
    except ValueError as error:
        raise UsageError(f"--program {program}: {str(error).lower()}; close the quotes") from error
    if engine == "sglang" and "--model-path" not in begun:
        begun.append("--model-path")
    return (*begun, *words)
