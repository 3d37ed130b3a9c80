"""Each fault left a trace (`bench/faults.py --keep-traces`): it replays to the verdict given then, the one that its row wants."""

import json
from pathlib import Path
from typing import Any

import pytest
from rows import ROWS, Row

from vigil.supervise.replay import replay

TRACES = Path(__file__).resolve().parents[1] / "traces"
KEPT: dict[str, dict[str, Any]] = json.loads((TRACES / "faults.json").read_text())
BY_NAME = {row.name: row for row in ROWS}
MOST_BYTES = 150_000
MOST_BYTES_ALL = 4_000_000

# A real SGLang 0.5.17 on an H200 (tests/gpu), and a log whose usage error came before its process was seen.
OTHERS = {
    "gpu-base": ("ready", None),
    "gpu-eagle": ("ready", None),
    "gpu-flag": ("crashed", "FLAG001"),
    "gpu-nomodel": ("crashed", "FILE001"),
    "gpu-loop": ("crash_looping", "MEM002"),
    "gpu-squatted": ("unhealthy", "PORT001"),
    "gpu-hung": ("unhealthy", None),
    "gpu-killed": ("unhealthy", None),
    "gpu-expected": ("degraded", None),
    "gpu-refused": ("refused", "FLAG001"),
    "bug-log-before-main-started": ("crashed", "FLAG001"),
}
# No trace can tell of these: the watching never began (an error), or the watcher who wrote it was killed, or its disk was full.
UNTOLD = {"error:1", "error:2"}


def is_told(row: Row) -> bool:
    """Say whether a trace can hold what the row is about."""
    return not (UNTOLD & set(row.expect) or row.act.startswith("kill_watcher") or "--trace" in row.options)


def replayed(path: Path) -> tuple[str, str | None]:
    """Return the last verdict of a trace, and the code of its cause."""
    *_, last = replay(path)
    return str(last.word), last.cause.code if last.cause else None


@pytest.mark.parametrize("name", sorted(KEPT))
def test_trace_of_a_fault_replays_to_its_verdict(name: str) -> None:
    kept = KEPT[name]

    assert replayed(TRACES / name) == (kept["verdict"], kept["cause"])


@pytest.mark.parametrize("name", sorted(KEPT))
def test_trace_of_a_fault_was_told_as_its_row_wants(name: str) -> None:
    row, kept = BY_NAME[KEPT[name]["row"]], KEPT[name]

    assert kept["verdict"] == row.expect[-1]
    assert not row.cause or kept["cause"] in row.cause


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_trace_of_a_real_engine_replays_to_its_verdict(name: str) -> None:
    assert replayed(TRACES / f"{name}.jsonl") == OTHERS[name]


def test_traces_are_kept_of_every_row_that_one_can_tell_of() -> None:
    assert sorted(row.name for row in ROWS if is_told(row)) == sorted(kept["row"] for kept in KEPT.values())


def test_traces_of_faults_are_small() -> None:
    sizes = {name: (TRACES / name).stat().st_size for name in KEPT}

    assert {name: size for name, size in sizes.items() if size > MOST_BYTES} == {}
    assert sum(sizes.values()) < MOST_BYTES_ALL


def test_traces_hold_no_secret() -> None:
    secrets = ("sekret", "Authorization", "BEGIN OPENSSH")
    found = [path.name for path in TRACES.glob("*.jsonl") for secret in secrets if secret in path.read_text()]

    assert found == []
