"""What could matter, as one start found it: kept beside it, so that a later start that fails can be held against it.

Taken after the command runs, in a process of its own (`aside`). It is written in three steps, each whole: what is known at once,
what takes a look at disks and GPUs, and the engine's edited files, which may take seconds.
"""

import json
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

from ..launcher import state
from .interpreter import Place
from .look import MOST_TROUBLES, Look, strings
from .variables import Keeper, keeper, texts

SCHEMA = 1
LARGEST_BYTES = 256 << 10


class Order(NamedTuple):
    """What is to be kept of a start. `asked` is the tool's word on it: words, flags, models, packages to look into."""

    folder: str
    main: Dict[str, int]
    words: List[str]
    place: Place
    asked: Dict[str, Any]


def order_of(
    started: Dict[str, Any], command: Sequence[bytes], env: Dict[bytes, bytes], cwd: str, asked: Dict[str, Any]
) -> Order:
    """Return the order for a start that was just made, as `launch` answers it."""
    words = strings(asked.get("words")) or [word.decode("utf-8", "surrogateescape") for word in command]
    return Order(started["folder"], started["life"]["main"], words, Place(texts(env.items()), cwd), asked)


def take(order: Order) -> None:
    """Look, and write what was found beside the start."""
    keep = keeper(order.words, order.place.env, strings(order.asked.get("key_flags")))
    look = Look(order.words, order.place, order.main, keep, order.asked)
    head = {"schema": SCHEMA, "wall_s": time.time()}
    began_s = time.monotonic()
    steps = (look.at_once, look.around, look.into)
    for step in steps:
        step()
        took_s = round(time.monotonic() - began_s, 3)
        write(order.folder, {**head, "whole": step == steps[-1], "took_s": took_s, **look.found}, keep)


def write(folder: str, found: Dict[str, Any], keep: Keeper) -> None:
    """Write what was found, without secrets and within its size; where the folder is gone, nobody wants to know."""
    value = _safe(found, keep.redactor.clean)
    for part in ("files", "models", "inner", "edited", "sources", "packages", "env"):
        if len(json.dumps(value)) <= LARGEST_BYTES:
            break
        value[part] = None
        value["troubles"] = [*value["troubles"], "%s: more than fits" % part][-MOST_TROUBLES:]
    try:
        state.write_json(os.path.join(folder, state.SNAPSHOT), value)
    except OSError:
        pass


def _safe(value: Any, clean: Callable[[str], str]) -> Any:
    """Return a value whose texts hold neither a secret nor what is no text."""
    if isinstance(value, str):
        return clean(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    if isinstance(value, dict):
        return {_safe(name, str): _safe(one, clean) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(one, clean) for one in value]
    return value
