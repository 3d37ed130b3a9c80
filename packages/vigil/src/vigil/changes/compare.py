"""Compare two snapshots: what differs, what could explain the cause first."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from vigil.changes.change import Change
from vigil.changes.explains import EXPLAINS, USUALLY, rank
from vigil.changes.field import LOOSE, MASKED, Field, Fields
from vigil.changes.fields import fields_of
from vigil.changes.snapshot import Snapshot
from vigil.diagnosis.cause import Cause

SHORTEST_NAME = 3
GPU_SHARE = 0.05
ROOM_SHARE = 0.2
SHOWN_CHARS = 300
NAMED, ASKED_FOR, UNRELATED, BETTER = range(4)
_ALONE = ("model.", "file.", "edited.", "flag.", "env.")
"""What a cause that names it is about; a package is named in every other traceback."""
_AS_INSTALLED = {"edited": "as installed", "sources": "as installed"}
_ONLY_COMMON = frozenset({"files", "disks", "machine"})
"""That a path is named now is said by its flag; that its content, or its disk, differs, here. Every machine has a kernel:
where only one side knows it, the other did not look."""


class _Difference(NamedTuple):
    key: str
    was: Field | None
    now: Field | None
    absent: str | None = None


def compare(before: Snapshot, after: Snapshot, cause: Cause | None = None) -> tuple[Change, ...]:
    """Return what differs, most explaining first. A part that one of them did not see is left out."""
    old, new = fields_of(before, after.key_id), fields_of(after, before.key_id)
    unsure = (_not_seen_whole(before), _not_seen_whole(after))
    found = [one for part in old if part in new for one in _differences(part, old[part], new[part], unsure)]
    once = {one.key: one for one in reversed(found)}  # a variable of the start is one of the process inside, too
    weighed = [(_weight(one, cause), one.key, one) for one in _without_moved_weights(list(once.values()))]
    weighed.sort(key=lambda one: one[:2])
    return tuple(_change(one, explains=weight[0] < UNRELATED) for weight, _, one in weighed)


def _not_seen_whole(snapshot: Snapshot) -> frozenset[str]:
    """Return the parts of which only some was seen: what is not in them may be there all the same."""
    edited = snapshot.edited is not None and snapshot.edited.unchecked > 0
    sources = any(one.path and one.dirty is None for one in (snapshot.sources or {}).values())
    return frozenset({part for part, some in (("edited", edited), ("sources", sources)) if some}) | _ONLY_COMMON


def _differences(
    part: str, old: Fields, new: Fields, unsure: tuple[frozenset[str], frozenset[str]]
) -> Iterator[_Difference]:
    for key in dict.fromkeys((*new, *old)):
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            if part not in unsure[was is not None] and not _is_level(was or now):
                yield _Difference(key, was, now, _AS_INSTALLED.get(part))
        elif _is_level(was) and _is_level(now):
            if _matters(was, now):
                yield _Difference(key, was, now)
        elif was.same is not None and now.same is not None and not _alike(was.same, now.same):
            yield _Difference(key, was, now)


def _alike(was: str, now: str) -> bool:
    (was, _, more), (now, _, further) = was.partition(LOOSE), now.partition(LOOSE)
    return was == now and (more == further or not more or not further)


def _is_level(field: Field | None) -> bool:
    return field is not None and field.free is not None


def _matters(was: Field, now: Field) -> bool:
    """Say whether a level differs by so much that a start could feel it: of a GPU any leftover server does."""
    if was.free is None or now.free is None:
        return False
    share = GPU_SHARE if was.what.startswith("free memory of GPU") else ROOM_SHARE
    return abs(was.free - now.free) > share * max(was.total or 0, now.total or 0, 1)


def _without_moved_weights(found: list[_Difference]) -> list[_Difference]:
    """Leave the weights of a model out that lies elsewhere now: that they are others is no news."""
    moved = tuple(f"{one.key}.weights" for one in found if one.key.startswith("model.") and _is_model_itself(one))
    return [one for one in found if not one.key.startswith(moved)] if moved else found


def _is_model_itself(one: _Difference) -> bool:
    return ".weights" not in one.key and ".settings." not in one.key


def _weight(one: _Difference, cause: Cause | None) -> tuple[int, int]:
    """Return how much a difference explains: those that the cause names, those of its kind, the others, what got better."""
    usual = rank(one.key, USUALLY)
    usual = len(USUALLY) if usual is None else usual
    if one.was is not None and one.now is not None and _got_better(one.was, one.now):
        return BETTER, usual
    place = rank(one.key, EXPLAINS.get(cause.code) or EXPLAINS.get(cause.kind, ())) if cause is not None else None
    if cause is not None and (place is not None or one.key.startswith(_ALONE)) and _names(cause, one):
        return NAMED, usual
    return (UNRELATED, usual) if place is None else (ASKED_FOR, place)


def _got_better(was: Field, now: Field) -> bool:
    return was.free is not None and now.free is not None and now.free > was.free


def _names(cause: Cause, one: _Difference) -> bool:
    """Say whether the cause speaks of what differs; of files also where its traceback goes through them."""
    said = f"{cause.title} {cause.text} {cause.advice}"
    if one.key.startswith(("edited.", "file.")):
        said += " " + " ".join(text for _, text in cause.around)
    names = {
        name for field in (one.was, one.now) if field is not None for name in field.names if len(name) >= SHORTEST_NAME
    }
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said) for name in names)


def _change(one: _Difference, *, explains: bool) -> Change:
    field = one.now or one.was
    assert field is not None  # noqa: S101 - a difference has a side
    before = one.absent if one.was is None else one.was.text
    after = one.absent if one.now is None else one.now.text
    if before is not None and after is not None and before == after:
        after = "changed" if MASKED in after else f"{after} (changed)"
    return Change(what=_cut(field.what) or "", before=_cut(before), after=_cut(after), explains=explains)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
