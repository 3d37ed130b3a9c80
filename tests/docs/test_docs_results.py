"""The page of measurements: whatever the benchmarks left becomes tables."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DEATH = {"group": "deaths", "fault": "exit 1", "expected": ["crashed"]}
FAULTS = {
    "scale 1": {
        "date": "d",
        "machine": {"cores": 2},
        "passes": 2,
        "rows": [
            {**DEATH, "where": "here", "right": 2, "wrong": 0, "median_s": 0.02, "p95_s": 0.03},
            {**DEATH, "where": "ssh", "right": 1, "wrong": 1, "median_s": None, "p95_s": None},
        ],
    }
}


def told_of(generate: ModuleType, folder: Path, name: str, content: Any) -> str:
    path = folder / name
    path.write_text(json.dumps(content), "utf-8")
    return "\n".join(generate.results.file_parts(path))


def test_faults_are_counted_by_place(generate: ModuleType, tmp_path: Path) -> None:
    told = told_of(generate, tmp_path, "faults.json", FAULTS)
    assert told.startswith("## Faults")
    assert "machine: cores 2" in told
    assert "3 of 4 as expected." in told
    assert "| deaths | exit 1 | `crashed` | 2 of 2 | 0.020 | 0.030 | 1 of 2 |  |  |" in told


def test_peers_stand_in_rows_and_faults_in_columns(generate: ModuleType, tmp_path: Path) -> None:
    row = {"fault": "healthy", "peer": "loop", "version": "", "answer": "ready", "judged": "right", "seconds": 1.5}
    told = told_of(
        generate, tmp_path, "peers.json", {"date": "d", "rows": [row, {**row, "peer": "vigil", "seconds": None}]}
    )
    assert "|  | healthy |" in told
    assert "| loop | **right** ready, 1.50 s |" in told
    assert "| vigil | **right** ready |" in told


def test_ratios_stand_below_the_peers(generate: ModuleType, tmp_path: Path) -> None:
    row = {"fault": "healthy", "peer": "loop", "answer": "ready", "judged": "right", "seconds": 1.5}
    ratios = [{"peer": "loop", "right": 1, "told": "1 of 1 right: healthy x15"}]
    told = told_of(generate, tmp_path, "peers.json", {"date": "d", "rows": [row], "ratios": ratios})
    assert "| loop | 1 | 1 of 1 right: healthy x15 |" in told


def test_missed_target_is_told(generate: ModuleType, tmp_path: Path) -> None:
    row = {"what": "exit to verdict", "unit": "ms", "median": 18.0, "p95": 61.0, "worst": 61.0, "n": 20}
    rows = [{**row, "target": "<= 50", "reached": "NO"}, {**row, "target": None, "reached": None}]
    told = told_of(generate, tmp_path, "bench.json", {"date": "d", "rows": rows})
    assert "| exit to verdict | 18 ms | 61 | 61 | 20 | &lt;= 50 ms | **no** |" in told
    assert "| exit to verdict | 18 ms | 61 | 61 | 20 | - | - |" in told


@pytest.mark.parametrize(
    "content",
    [
        {"date": "d", "rows": [{"what": "a|b <i>", "p95_s": 0.031}]},
        {"date": "d", "replay": {"facts_per_s": 123456.7}},
        {},
        [],
    ],
    ids=["rows", "values", "empty", "list"],
)
def test_measurements_of_any_form_become_tables(generate: ModuleType, tmp_path: Path, content: Any) -> None:
    told = told_of(generate, tmp_path, "other.json", content)
    assert told.startswith("## other")
    assert "<i>" not in told
    assert "a|b" not in told


def test_page_stands_without_any_measurement(generate: ModuleType) -> None:
    assert generate.results.pages()["results.md"].startswith("# Measurements")
