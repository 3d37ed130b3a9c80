"""What a start script came to, where the words of the command do not say it: seen in the tree below, while it lives."""

import os
import time
from typing import Dict, List, NamedTuple, Optional, Sequence

from ..launcher import family
from ..launcher.attester import without_attester
from ..launcher.plugin import without_plugin
from ..observer.process import is_alive, read_argv, read_environ
from .interpreter import Place, find

PATIENCE_S = 8.0
PAUSE_S = 0.25
LONGEST_PAUSE_S = 2.0


class Inner(NamedTuple):
    """A process below the command: its words as they stand in /proc, its environment and folder."""

    words: List[str]
    place: Place


def look_inside(main: Dict[str, int], signs: Sequence[str], patience_s: float = PATIENCE_S) -> Optional[Inner]:
    """Return the first process of an engine (by `signs` in its words) that comes, else the one that an interpreter runs then."""
    until_s = time.monotonic() + patience_s
    pause_s, other = PAUSE_S, None
    while is_alive(main["pid"], main["start_ticks"]):
        seen = [one for one in map(_read, _tree(main["pid"])) if one is not None]
        engine = next((one for one in seen if any(sign in " ".join(one.words) for sign in signs)), None)
        if engine is not None:
            return engine
        other = seen[0] if seen else None
        if time.monotonic() >= until_s:
            break
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    return other


def _tree(pid: int) -> List[int]:
    return [pid, *(child for child, _ in family.below({pid}, family.table()))]


def _read(pid: int) -> Optional[Inner]:
    """Return a process that an interpreter or a binary of its own runs, or None."""
    words = list(read_argv(pid))
    try:
        place = Place(without_plugin(without_attester(dict(read_environ(pid)))), os.readlink("/proc/%d/cwd" % pid))
    except OSError:
        return None
    program = find(words, place) if words else None
    return Inner(words, place) if program is not None else None
