"""What a wish makes of a command: its words with the engine's own switching asked for, and the schedule that travels with it.

Where an engine cannot switch while it runs, the reason is one line, and nothing is started.
"""

from typing import Any, NoReturn

import msgspec

from vigil.errors import UsageError
from vigil.preflight.command import Command
from vigil.preflight.finding import edited
from vigil.screen import plain
from vigil.speculation.schedules import Schedules
from vigil.speculation.vllm import vllm_command, vllm_k
from vigil.speculation.wish import Wish

SIMPLY = "start it with speculation or without, whichever `vigil compare` finds better at your load"
_CANNOT = {
    "llamacpp": f"llama-server cannot switch speculation while it runs: {SIMPLY}",
    "sglang": f"switching speculation in SGLang is not part of this release of vigil-engine: {SIMPLY}",
    "generic": "no start of vLLM is seen in this command (a script is not read: give the command line that it runs)",
}


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """A command that can be switched: its words, the schedule as it travels, and its digest."""

    words: tuple[str, ...]
    schedule: str
    digest: str


def arrange(command: Command, wish: Wish, schedules: Schedules, text: str | None = None) -> Arranged:
    """Return what becomes of a command; `text` is that of the schedule's file where the wish names one.

    Raises:
        UsageError: It cannot be switched; the reason, in one line.

    """
    if command.engine in _CANNOT:
        _refuse(wish, _CANNOT[command.engine])
    k = vllm_k(command, lambda why: _refuse(wish, why))
    held = schedules.off_above(wish.most, k, command.engine) if text is None else schedules.read(text)
    _check_fit(wish, held, command.engine, k)
    edits = vllm_command(command, held, schedules.all_k(held))
    return Arranged(
        words=edited(command.words, edits),
        schedule=msgspec.json.encode(held).decode(),
        digest=schedules.digest(held),
    )


def _check_fit(wish: Wish, held: dict[str, Any], engine: str, k: int) -> None:
    if held["engine"] != engine:
        _refuse(wish, f"the schedule is for {held['engine']}, and the command starts {engine}")
    if held["k"] != k:
        _refuse(wish, f"the schedule was made for k {held['k']}, and the command asks for {k} draft tokens a step")


def _refuse(wish: Wish, why: str) -> NoReturn:
    raise UsageError(f"{_named(wish)}: {why}")


def _named(wish: Wish) -> str:
    return wish.text if wish.text.startswith("--") else f"--speculate {plain(wish.text, 80)}"
