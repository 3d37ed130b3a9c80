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
LEARNT = {
    "kubectl --prefix": "[pod/vllm-0/vllm] {}",
    "stern": "vllm-0 vllm {}",
    "stern, another way": "vllm-6f7c9d-abcde \u203a vllm {}",
    "journalctl -o short-iso": "2026-03-01T10:00:01+0000 gpu1 vllm[12]: {}",
    "ts": "Mar 01 10:00:01 {}",
    "srun --label": "13: {}",
    "mpirun --tag-output": "[1,0]<stderr>: {}",
    "pm2": "0|vllm     | {}",
    "supervisord": "2026-03-01 10:00:01,123 DEBG 'vllm' stderr output: {}",
    "a tag": "[VLLM LOG] {}",
    "a quotation": "> {}",
    "a container's id": "3f2a9c1b7d0e {}",
    "a time of day": "10:00:01.123 | {}",
}
"""Carriers of which nothing is known but that (nearly) all lines have them: a log must have a few lines for that."""


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_wording_is_known_whatever_carried_its_lines(carrier: str) -> None:
    for family in ALL:
        carried = family._replace(
            lines=tuple(Line(n, carrier.format(text)) for n, text in map(msgspec.structs.astuple, family.lines))
        )
        assert where(look(carried)) == where(look(family)), family


@pytest.mark.parametrize("carrier", LEARNT.values(), ids=LEARNT)
def test_carrier_of_all_lines_is_learnt_from_them(carrier: str) -> None:
    for family in ALL:
        if len(family.lines) > 3:
            carried = tuple(Line(line.number, carrier.format(line.text)) for line in family.lines)
            found = look(family._replace(lines=carried))
            assert where(found) == where(look(family)), family
            assert found.cause is None or found.cause.text in {line.text for line in carried}


def test_flood_of_one_message_is_no_carrier() -> None:
    flood = ["RuntimeError: CUDA error: out of memory"] * 30
    cause = examine([Line(number, text) for number, text in enumerate(flood, 1)], End(), table("vllm")).cause
    assert cause is not None
    assert cause.kind == "gpu_oom_load"


def test_each_kind_of_the_taxonomy_has_a_wording() -> None:
    assert len({one.kind for one in ALL}) >= 37
