"""What a user wishes of speculation: `--speculate`, or the flag that people asked SGLang for, found in the command."""

import re
from typing import Literal

import msgspec

from vigil.errors import UsageError
from vigil.preflight.command import Command
from vigil.preflight.finding import Edit
from vigil.screen import plain

FLAG = "--speculative-disable-batch-threshold"
"""Of no engine: sglang#13804 and others asked for it. What it says is a wish, taken out before the engine sees it."""
_OFF_ABOVE = re.compile(r"off-above:(\d{1,6})\Z")
_NUMBER = re.compile(r"\d{1,6}\Z")
FORMS = "off-above:N (N running requests), auto, or the path of a schedule"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A wish, as it was written. `most`: the running requests up to which it speculates; `path`: of a schedule."""

    kind: Literal["off-above", "auto", "file"]
    text: str
    most: int = 0
    path: str = ""


def read_wish(text: str) -> Wish:
    """Return what `--speculate` says.

    Raises:
        UsageError: It says nothing that can be done.

    """
    match = _OFF_ABOVE.match(text)
    if match is not None:
        return Wish(kind="off-above", text=text, most=int(match[1]))
    if text == "auto":
        return Wish(kind="auto", text=text)
    if not text or text.startswith("off") or not text.isprintable():
        raise UsageError(f"--speculate {plain(text, 60)!r}: give {FORMS}")
    return Wish(kind="file", text=text, path=text)


def taken_out(command: Command) -> tuple[tuple[Edit, ...], Wish | None]:
    """Return the edits that take the flag out of a command, and what it wishes; no edits and None where it has none.

    Raises:
        UsageError: Its value is no number of requests.

    """
    given = command.all_of(FLAG)
    if not given:
        return (), None
    value = given[-1].value or ""
    if not _NUMBER.match(value):
        raise UsageError(
            f"{FLAG} {plain(value, 40)!r}: give the number of running requests above which speculation is off"
        )
    wish = Wish(kind="off-above", text=f"{FLAG} {value}", most=int(value))
    return tuple(Edit(at=one.at, drop=one.count) for one in given), wish
