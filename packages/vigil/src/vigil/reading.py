"""What one log line says about a start-up, read with an engine's table: pure, and cheap enough for every line.

Most lines say nothing; a few searches for pieces of the table's texts find that out (about 2 us for 120 characters),
and all else runs only on the rest. Only the first `HEAD_CHARS` characters of a line are looked at, so that a hostile
line costs no more than an honest one.

A line alone cannot say everything: the second "Load weight begin" of a life is the draft's, which `Reading.starts`
and the table's `repeats_as` let the caller see. Where several ranks print the same lines, only those of the first one
move the phase; the others' would be taken for a second time.
"""

import re
from collections.abc import Iterable, Sequence
from operator import itemgetter

import msgspec

from vigil.engine_table import EngineTable, Phase, Sign
from vigil.facts import Line

HEAD_CHARS = 1000
"""Engines print what we look for near a line's start; the longest prefix seen in real logs is below 100 characters."""

_UNITS = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_MOST_COMPILED = 64
_SHORTEST_NEEDLE = 8
_LONGEST_NEEDLE = 16


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one line says; a line that says nothing has none.

    `phase`: where the start-up is; `starts`: the phase begins with this line; `done` of `total`: progress in the phase
    (shards, graphs, or bytes). `banner`: a life of the main process began. `ready`: the engine says that it serves.
    `alive`: printed because tokens flow. `fatal`: the engine says that it gives up.
    """

    phase: Phase | None = None
    starts: bool = False
    done: int | None = None
    total: int | None = None
    banner: bool = False
    ready: bool = False
    alive: bool = False
    fatal: bool = False


class _Compiled:
    """One table, made ready for reading.

    Invariant: a text of the table stands only in lines in which its needle stands; `texts` gives the texts of a needle.
    """

    def __init__(self, table: EngineTable) -> None:
        self.signs: dict[str, list[tuple[int, Sign, re.Pattern[str] | None]]] = {}
        for number, sign in enumerate(table.signs):
            self.signs.setdefault(sign.text, []).append((number, sign, _maybe(sign.pattern)))
        self.banners = frozenset(table.banners)
        self.ready = frozenset(table.ready_lines)
        self.alive = frozenset(table.alive_lines)
        self.fatal = frozenset(table.fatal_lines)
        self.texts = _needles(
            {*self.signs, *self.banners, *self.ready, *self.alive, *self.fatal}, " ".join(table.hallmarks)
        )
        self.needles = tuple(self.texts)
        self.banner = _maybe(table.banner_pattern)
        self.idle = _maybe(table.idle_pattern)
        self.echo = _maybe(table.echo_pattern)
        self.rank = _maybe(table.rank_pattern)


_compiled: dict[int, tuple[EngineTable, _Compiled]] = {}


def read_sign(table: EngineTable, text: str) -> Reading | None:
    """Return what the line `text` says in the words of `table`: None for nearly all lines. Never raises."""
    known = _compiled.get(id(table))
    compiled = known[1] if known else _compile(table)
    if len(text) > HEAD_CHARS:
        text = text[:HEAD_CHARS]
    found = [needle for needle in compiled.needles if needle in text]
    return _read_hit(compiled, text, found) if found else None


def read_lines(table: EngineTable, lines: Sequence[Line]) -> dict[int, Reading]:
    """Return the readings of several lines by index: one search of all of them costs a third of one search each."""
    known = _compiled.get(id(table))
    compiled = known[1] if known else _compile(table)
    texts = [line.text[:HEAD_CHARS] for line in lines]
    whole = "\n".join(texts)
    found = [needle for needle in compiled.needles if needle in whole]
    readings: dict[int, Reading] = {}
    if not found:
        return readings
    for index, text in enumerate(texts):
        here = [needle for needle in found if needle in text]
        reading = _read_hit(compiled, text, here) if here else None
        if reading is not None:
            readings[index] = reading
    return readings


def _read_hit(compiled: _Compiled, text: str, needles: Sequence[str]) -> Reading | None:
    """Read a line in which `needles` stand: only their texts can stand in it."""
    if compiled.echo is not None and compiled.echo.match(text):
        return None
    found = [one for needle in needles for one in compiled.texts[needle] if one in text]
    banner = not compiled.banners.isdisjoint(found) and (
        compiled.banner is None or compiled.banner.search(text) is not None
    )
    alive = not compiled.alive.isdisjoint(found) and (compiled.idle is None or compiled.idle.search(text) is None)
    ready = not compiled.ready.isdisjoint(found)
    fatal = not compiled.fatal.isdisjoint(found)
    sign, done, total = _find_sign(compiled, text, found)
    if sign is None and not (banner or ready or alive or fatal):
        return None
    return Reading(
        phase=sign.phase if sign else None,
        starts=sign.starts if sign else False,
        done=done,
        total=total,
        banner=banner,
        ready=ready,
        alive=alive,
        fatal=fatal,
    )


def _find_sign(compiled: _Compiled, text: str, found: Sequence[str]) -> tuple[Sign | None, int | None, int | None]:
    """Return the first sign of the table that `text` shows, with its progress; another rank's line shows none."""
    candidates = [candidate for one in found for candidate in compiled.signs.get(one, ())]
    if not candidates or _is_other_rank(compiled, text):
        return None, None, None
    if len(candidates) > 1:
        candidates.sort(key=itemgetter(0))
    for _, sign, pattern in candidates:
        if pattern is None:
            return sign, None, None
        match = pattern.search(text)
        if match is not None:
            return (sign, *_progress(match))
    return None, None, None


def _progress(match: re.Match[str]) -> tuple[int | None, int | None]:
    """Return (done, total) of a progress bar, or Nones where the pattern has none or the numbers make no sense."""
    groups = match.groupdict()
    done, total = groups.get("done"), groups.get("total")
    if done is None or total is None:
        return None, None
    first = _count(done, groups.get("done_unit"))
    last = _count(total, groups.get("total_unit"))
    if first is None or last is None or last <= 0 or first > last:
        return None, None
    return first, last


def _count(number: str, unit: str | None) -> int | None:
    try:
        return round(float(number) * _UNITS.get(unit or "", 1))
    except (ValueError, OverflowError):
        return None


def _is_other_rank(compiled: _Compiled, text: str) -> bool:
    match = compiled.rank.match(text) if compiled.rank is not None else None
    return match is not None and match.group("other") is not None


def _compile(table: EngineTable) -> _Compiled:
    if len(_compiled) >= _MOST_COMPILED:
        _compiled.clear()
    compiled = _Compiled(table)
    _compiled[id(table)] = (table, compiled)  # holding the table keeps its id its own
    return compiled


def _needles(texts: Iterable[str], common: str) -> dict[str, tuple[str, ...]]:
    """Return few short pieces of `texts`, each with those that hold it, such that each text is held once.

    The pieces are what each line is searched for.

    Shorter pieces than `_SHORTEST_NEEDLE`, and pieces of `common` ("EngineCore"), stand in too many lines. A piece
    costs about 40 ns a line, all of them together half of what one regular expression of the texts would.
    """
    left = {text for text in texts if text}
    holders: dict[str, set[str]] = {text: {text} for text in left}
    for text in left:
        for size in range(_SHORTEST_NEEDLE, min(_LONGEST_NEEDLE, len(text)) + 1):
            for start in range(len(text) - size + 1):
                holders.setdefault(text[start : start + size], set()).add(text)
    candidates = [piece for piece in holders if piece in left or piece not in common]
    chosen: dict[str, tuple[str, ...]] = {}
    while left:
        gains = [(len(holders[piece] & left), -len(piece), piece) for piece in candidates]
        best = max(gains)[2]
        chosen[best] = tuple(sorted(holders[best] & left))
        left -= holders[best]
    return chosen


def _maybe(pattern: str | None) -> re.Pattern[str] | None:
    return None if pattern is None else re.compile(pattern)
