"""The arms of `vigil tune` from one command: without its speculation, with its own k (draft tokens a step), with others. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import NoReturn

import msgspec

from vigil.engines import asks_speculation
from vigil.engines.registry import table
from vigil.errors import UsageError
from vigil.preflight import check_json
from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Edit, edited
from vigil.preflight.pointed import with_value
from vigil.preflight.ranks import whole
from vigil.speculation import sglang, vllm

OFF, ON = "off", "on"
MOST_K = 64
_LLAMA = (
    "-md", "--model-draft", "-hfd", "-hfrd", "--hf-repo-draft", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft",
    "-devd", "--device-draft", "-ctkd", "--cache-type-k-draft", "-ctvd", "--cache-type-v-draft", "-td", "--threads-draft",
    "-tbd", "--threads-batch-draft", "-cd", "--ctx-size-draft", "--draft", "--draft-n", "--draft-max", "--draft-n-min",
    "--draft-min", "--draft-p-min", "--draft-p-split", "-otd", "--override-tensor-draft", "-cmoed", "--cpu-moe-draft",
    "-ncmoed", "--n-cpu-moe-draft",
)  # fmt: skip
_PREFIXES = {"sglang": ("--speculative-",), "vllm": ("--speculative-",), "llamacpp": ("--spec-",)}
_NAMES = {"vllm": (*vllm.CONFIG, "--num-speculative-tokens"), "llamacpp": _LLAMA}
"""The flags that ask for speculation or shape it: SGLang 0.5.23 and vLLM 0.32 by their prefix, llama-server b11434 by name."""
_RUNNING = {
    "sglang": (("--max-running-requests",), 128),
    "vllm": (("--max-num-seqs",), 256),
    "llamacpp": (("-np", "--parallel"), 4),
}
"""What limits the running requests, and how far to go where it is not given (SGLang's own limit is set alike to that)."""


class Arms(msgspec.Struct, frozen=True, kw_only=True):
    """Commands by name, `off` the first, and the k of each. `own`: the command's own k, None where it cannot be seen.

    `cannot`: why the engine cannot switch while it runs, in one line; empty where it can.
    """

    words: dict[str, tuple[str, ...]]
    k: dict[str, int]
    own: int | None
    cannot: str = ""


def arms_of(command: Command, asked: Sequence[int] = ()) -> Arms:
    """Return the arms of a command; `asked` are further numbers of draft tokens.

    Raises:
        UsageError: It asks for no speculation, or for a k that cannot be set in it.

    """
    if command.engine not in _PREFIXES or not asks_speculation(table(command.engine), command.words):
        raise UsageError(
            "the command asks for no speculation that is known here: give it with its draft, as it speculates"
        )
    off = edited(command.words, tuple(Edit(at=one.at, drop=one.count) for one in _speculative(command)))
    try:
        own = _own(command)
    except UsageError as error:
        if asked:
            raise UsageError(f"--k: {error}") from error
        return Arms(words={OFF: off, ON: command.words}, k={OFF: 0, ON: 1}, own=None, cannot=str(error))
    wanted = sorted({own, *(asked or (1,))}, reverse=True)
    words = {OFF: off} | {f"k{k}": edited(command.words, _with_k(command, k, own)) for k in wanted}
    return Arms(words=words, k={OFF: 0} | {f"k{k}": k for k in wanted}, own=own)


def read_k(text: str | None) -> tuple[int, ...]:
    """Return the numbers of `--k 1,3`; raise `UsageError` for what is none."""
    found = []
    for word in text.split(",") if text is not None else ():
        if not word.strip().isdigit() or not 1 <= int(word) <= MOST_K:
            raise UsageError(f"--k {text!r}: give draft tokens a step, 1 to {MOST_K}, with commas between, such as 1,3")
        found.append(int(word))
    return tuple(dict.fromkeys(found))


def loads_of(command: Command) -> tuple[int, ...]:
    """Return 1, 2, 4, 8, ... up to what the server lets run, and that itself."""
    names, unsaid = _RUNNING[command.engine]
    said = whole(command, *names)
    most = said if said is not None and 1 <= said <= 1 << 16 else unsaid
    return tuple(dict.fromkeys([*(2**n for n in range(most.bit_length())), most]))


def _speculative(command: Command) -> Iterator[Given]:
    """Yield each flag of speculation once."""
    for one in command.flags:
        if one.plain.startswith(_PREFIXES[command.engine]) or one.plain in _NAMES.get(command.engine, ()):
            yield one


def _own(command: Command) -> int:
    """Return the command's k; raise `UsageError` with the reason where the engine cannot switch it."""

    def refuse(why: str) -> NoReturn:
        raise UsageError(why)

    if command.engine == "llamacpp":
        refuse("llama-server cannot switch speculation while it runs")
    return (sglang.sglang_k if command.engine == "sglang" else vllm.vllm_k)(command, refuse)


def _with_k(command: Command, k: int, own: int) -> tuple[Edit, ...]:
    """Return the edits that make a command draft k tokens a step."""
    if k == own:
        return ()
    if command.engine == "vllm":
        read = check_json.read(command, *vllm.CONFIG)
        return () if read is None else with_value(read.given, json.dumps({**read.value, vllm.TOKENS: k}))
    edits: list[Edit] = []
    for name, value in ((sglang.STEPS, k), (sglang.TOKENS, k + 1)):
        given = command.last(name)
        edits += with_value(given, str(value)) if given is not None else ()
    return tuple(edits)
