"""Wordings of each kind of failure, one for each engine and age where they differ: see `families/*.txt`."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from vigil.diagnosis import End, Findings, examine
from vigil.engines import table
from vigil.facts import Line

FOLDER = Path(__file__).parent / "families"


class Family(NamedTuple):
    kind: str
    engine: str
    stuck: bool
    lines: tuple[Line, ...]
    root: int | None


def families() -> list[Family]:
    found: list[Family] = []
    for path in sorted(FOLDER.glob("*.txt")):
        for part in path.read_text("utf-8").split("\n== ")[1:]:
            head, *rows = part.rstrip("\n").split("\n")
            kind, engine, *how = head.split()
            marked = [number for number, row in enumerate(rows, 1) if row.startswith("> ")]
            lines = tuple(Line(number, row.removeprefix("> ")) for number, row in enumerate(rows, 1))
            found.append(Family(kind, engine, bool(how), lines, marked[0] if marked else None))
    return found


def look(family: Family) -> Findings:
    return examine(family.lines, End(), None if family.engine == "trtllm" else table(family.engine))


def where(findings: Findings) -> tuple[str, int | None] | None:
    found = findings.cause or findings.stuck
    return (found.kind, found.line) if found else None


ALL = families()


@pytest.mark.parametrize("family", ALL, ids=[f"{n}-{one.kind}-{one.engine}" for n, one in enumerate(ALL)])
def test_wording_is_known_by_its_kind_and_its_line(family: Family) -> None:
    findings = look(family)
    if family.kind == "healthy":
        assert findings == Findings(cause=None, candidates=(), stuck=None)
    elif family.stuck:
        assert findings.cause is None
        assert findings.stuck is not None
        assert (findings.stuck.kind, findings.stuck.line) == (family.kind, family.root)
    else:
        assert findings.cause is not None
        assert (findings.cause.kind, findings.cause.line) == (family.kind, family.root)


CARRIERS = {
    "docker compose": "vllm-server-1  | {}",
    "container runtime": "2026-03-01T10:00:01.123456789Z stderr F {}",
    "kubectl --timestamps": "2026-03-01T10:00:01.123456789Z {}",
    "journald": "Mar 01 10:00:01 node1 vllm[4242]: {}",
}


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_wording_is_known_whatever_carried_its_lines(carrier: str) -> None:
    for family in ALL:
        carried = family._replace(
            lines=tuple(Line(n, carrier.format(text)) for n, text in map(msgspec.structs.astuple, family.lines))
        )
        assert where(look(carried)) == where(look(family)), family


def test_each_kind_of_the_taxonomy_has_a_wording() -> None:
    assert len({one.kind for one in ALL}) >= 37
