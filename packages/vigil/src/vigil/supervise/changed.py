"""What differs between two starts of a server, asked of its host; a failed verdict gets it told."""

from typing import Any

import msgspec

from vigil.changes import SCHEMA, Change, compare, read_snapshot
from vigil.diagnosis.cause import Cause
from vigil.errors import StateError, UsageError, VigilError
from vigil.hosts import Reach, call
from vigil.supervise.start import Started
from vigil.verdict import Verdict, Word

FAILED = frozenset({Word.CRASHED, Word.CRASH_LOOPING, Word.STALLED, Word.TIMED_OUT, Word.UNHEALTHY, Word.DEGRADED})
PATIENCE_S = 3.0  # for a snapshot that is being taken: a server that dies at once has none yet
ANSWER_S = 10.0
Found = dict[str, Any] | str
"""What a host answered; a text says why it did not."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of two starts. `stamp`: when it was made, by its host's clock (UTC); `ago_s`: how long that is."""

    number: int
    stamp: str
    ready: bool
    verdict: str | None = None
    ago_s: float | None = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Two starts of one name, and what differs."""

    schema: int = 1
    name: str
    before: Side
    after: Side
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


async def look_back(started: Started, reach: Reach, patience_s: float = PATIENCE_S) -> Found:
    """Ask the host what this start found, and what the last good one before it did; why not, where that cannot be told."""
    try:
        return await call(
            reach,
            "compare",
            timeout_s=patience_s + ANSWER_S,
            name=started.name,
            folder=started.folder,
            patience_s=patience_s,
        )
    except VigilError as error:
        return str(error)


def with_changes(verdict: Verdict, found: Found) -> Verdict:
    """Return a failed verdict with what changed since the last good start; any other, or without such a start, as it is.

    Where that cannot be told, one warning says why.
    """
    if verdict.word not in FAILED or (isinstance(found, dict) and found.get("before") is None):
        return verdict
    try:
        if isinstance(found, str):
            raise StateError(found)  # noqa: TRY301 - told as any other reason
        told = _difference(found, verdict.cause)
    except StateError as error:
        warning = f"what changed since the last good start is not known: {error}"
        return msgspec.structs.replace(verdict, warnings=(*verdict.warnings, warning))
    since_s = max(0.0, (told.before.ago_s or 0.0) - (told.after.ago_s or 0.0))
    return msgspec.structs.replace(verdict, changes=told.changes, changes_since_s=round(since_s, 3))


async def difference(reach: Reach, name: str, a: str | None, b: str | None) -> Difference:
    """Return what differs between the starts `a` and `b` of a server: their numbers, or when they were made.

    Else the newest one, against the last good one before it. Raises `UsageError` where one is not there.
    """
    answer = await call(reach, "compare", name=name, a=a, b=b, patience_s=PATIENCE_S)
    if answer.get("before") is None:
        raise UsageError(
            f"no start of {name} before {answer['after']['number']} became ready: name two of them "
            f"(there are {answer.get('listed') or 'no others'})"
        )
    try:
        cause = msgspec.convert(answer["after"].get("cause"), Cause | None)
    except msgspec.ValidationError:  # written by another version
        cause = None
    return _difference(answer, cause)


def _difference(answer: dict[str, Any], cause: Cause | None) -> Difference:
    sides = [answer["before"], answer["after"]]
    snapshots = [read_snapshot(side.get("snapshot") or {}) for side in sides]
    for side, snapshot in zip(sides, snapshots, strict=True):
        if snapshot is None:
            raise StateError(f"what start {side['number']} of {answer['name']} found {_why_not(side)}")
    before, after = snapshots
    assert before is not None  # noqa: S101 - looked at above
    assert after is not None  # noqa: S101 - looked at above
    return Difference(
        name=answer["name"],
        before=_side(sides[0], answer["now"]),
        after=_side(sides[1], answer["now"]),
        changes=compare(before, after, cause),
        notes=tuple(
            f"start {side['number']} was not seen whole: {told}"
            for side, snapshot in zip(sides, (before, after), strict=True)
            for told in snapshot.troubles or (() if snapshot.whole else ("it was still being looked at",))
        ),
    )


def _why_not(side: dict[str, Any]) -> str:
    """Return why nothing can be said of what a start found."""
    found = side.get("snapshot")
    if found and found.get("schema") != SCHEMA:
        return "was kept by another version"
    trouble = "it has another form" if found else side.get("snapshot_trouble")
    return f"cannot be read: {side.get('snapshot_file')}: {trouble}" if trouble else "was not kept"


def _side(side: dict[str, Any], now: float) -> Side:
    began = side.get("started_wall_s")
    ago_s = max(0.0, now - began) if isinstance(began, int | float) else None
    verdict = side.get("verdict")
    return Side(
        number=side["number"],
        stamp=side["stamp"],
        ready=side["ready"],
        verdict=verdict if isinstance(verdict, str) else None,
        ago_s=ago_s,
    )
