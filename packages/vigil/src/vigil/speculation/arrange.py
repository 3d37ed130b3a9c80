"""What a wish makes of a command: its words with the engine's own switching asked for, and the schedule that travels with it.

Where an engine cannot switch while it runs, the reason is one line, and nothing is started.
"""

import json
from typing import Any, NoReturn

import msgspec

from vigil.errors import UsageError
from vigil.observer.switching import PLACE
from vigil.preflight.command import Command
from vigil.preflight.finding import edited
from vigil.screen import plain
from vigil.speculation.schedules import Schedules
from vigil.speculation.sglang import adaptive_of, sglang_command, sglang_k
from vigil.speculation.vllm import vllm_command, vllm_k
from vigil.speculation.wish import Wish

ADAPTIVE_FILE = "adaptive.json"
SIMPLY = "start it with speculation or without, whichever `vigil compare` finds better at your load"
_CANNOT = {
    "llamacpp": f"llama-server cannot switch speculation while it runs: {SIMPLY}",
    "generic": "no start of vLLM or SGLang is seen in this command (a script is not read: give the command line that it runs)",
}


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """A command that can be switched: its words, the schedule as it travels, its digest, and the files that travel with it."""

    words: tuple[str, ...]
    schedule: str
    digest: str
    placed: dict[str, str] = {}


def arrange(command: Command, wish: Wish, schedules: Schedules, text: str | None = None) -> Arranged:
    """Return what becomes of a command; `text` is that of the schedule's file where the wish names one.

    Raises:
        UsageError: It cannot be switched; the reason, in one line.

    """

    def refuse(why: str) -> NoReturn:
        _refuse(wish, why)

    if command.engine in _CANNOT:
        refuse(_CANNOT[command.engine])
    sglang = command.engine == "sglang"
    k = (sglang_k if sglang else vllm_k)(command, refuse)
    held = schedules.off_above(wish.most, k, command.engine) if text is None else schedules.read(text)
    _check_fit(wish, held, command.engine, k)
    every_k = schedules.all_k(held)
    if sglang:
        edits = sglang_command(command, held, f"{PLACE}/{ADAPTIVE_FILE}", refuse)
        placed = {ADAPTIVE_FILE: json.dumps(adaptive_of(held, every_k))}
    else:
        edits, placed = vllm_command(command, held, every_k), {}
    return Arranged(
        words=edited(command.words, edits),
        schedule=msgspec.json.encode(held).decode(),
        digest=schedules.digest(held),
        placed=placed,
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
