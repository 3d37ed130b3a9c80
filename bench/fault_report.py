"""What the fault table says in the end: the lines that are printed, the figures that are kept, and one trace of each row."""

import json
import math
import os
import pathlib
import platform
import re
import statistics
import threading
import time
from collections.abc import Sequence
from typing import Any

from rows import ROWS

from fault_run import ROOT, Outcome

RESULTS = ROOT / "docs" / "results" / "faults.json"
TRACES = ROOT / "tests" / "traces"
VERDICTS = TRACES / "faults.json"
_keeping = threading.Lock()
LINE = "{mark:3} {group:28.28} {name:40.40} {where:5} {expected:24.24} {said:24.24} {cause:9} {after:>10} {took:>9}"
HEAD = {
    "mark": "", "group": "group", "name": "fault", "where": "where", "expected": "expected", "said": "verdict",
    "cause": "cause", "after": "after (s)", "took": "took (s)",
}  # fmt: skip


def head() -> str:
    """Return the table's first line."""
    return LINE.format(**HEAD)


def lines(outcome: Outcome) -> list[str]:
    """Return one line of the table, and what was wrong below it."""
    row = outcome.row
    line = LINE.format(
        mark="NOT" if outcome.problems else "ok", group=row.group, name=row.name, where=outcome.where,
        expected=" ".join(row.expect), said=" ".join(outcome.said), cause=outcome.cause or "-",
        after="-" if outcome.delay_s is None else f"{outcome.delay_s:.3f}", took=f"{outcome.took_s:.1f}",
    )  # fmt: skip
    return [line, *(f"      {problem}" for problem in outcome.problems)]


def percentile_95(values: Sequence[float]) -> float:
    """Return the smallest value that 95 in 100 do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def entry(played: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of one row in one place over all passes. Seconds count from the fault to the verdict."""
    row = played[0].row
    after = [outcome.delay_s for outcome in played if outcome.delay_s is not None]
    return {
        "group": row.group,
        "fault": row.name,
        "where": played[0].where,
        "expected": list(row.expect),
        "verdicts": sorted({" ".join(outcome.said) for outcome in played}),
        "causes": sorted({outcome.cause for outcome in played if outcome.cause}),
        "right": sum(not outcome.problems for outcome in played),
        "wrong": sum(bool(outcome.problems) for outcome in played),
        "from": row.mark,
        "median_s": round(statistics.median(after), 3) if after else None,
        "p95_s": round(percentile_95(after), 3) if after else None,
        "problems": sorted({problem for outcome in played for problem in outcome.problems}),
    }


def entries(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the figures of all rows."""
    played: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        played.setdefault((outcome.row.group, outcome.row.name, outcome.where), []).append(outcome)
    return [entry(played[key]) for key in sorted(played)]


def write(outcomes: Sequence[Outcome], *, scale: float, passes: int, pass_took_s: Sequence[float]) -> None:
    """Keep the figures as JSON with the machine and the date, one entry a scale. `passes`: those that were played to the end.

    Rows that were not played this time keep their figures, with the date of those.
    """
    kept: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    date = time.strftime("%Y-%m-%d %H:%M:%S %z")
    new = [{**row, "date": date} for row in entries(outcomes)]
    known = {(row.name, where) for row in ROWS for where in row.where} - {(row["fault"], row["where"]) for row in new}
    before = kept.get(f"scale {scale:g}", {})
    old = [row for row in before.get("rows", ()) if (row["fault"], row["where"]) in known]
    whole_s = round(statistics.mean(pass_took_s), 1) if pass_took_s and not old else before.get("pass_took_s")
    kept[f"scale {scale:g}"] = {
        "date": date,
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
        "load": round(os.getloadavg()[1], 1),
        "scale": scale,
        "passes": passes,
        "pass_took_s": whole_s,
        "rows": sorted([*old, *new], key=lambda row: (row["group"], row["fault"], row["where"])),
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def trace_name(outcome: Outcome) -> str:
    """Return the name of the row's trace: one a row, from here where it is played here."""
    return re.sub("[^a-z0-9.-]+", "-", outcome.row.name.lower()) + ".jsonl"


def keep_trace(outcome: Outcome, recorded: pathlib.Path) -> None:
    """Keep a row's trace, and beside it the verdict that it must replay to."""
    if outcome.where != outcome.row.where[0]:
        return
    told = {"row": outcome.row.name, "where": outcome.where, "verdict": outcome.said[-1], "cause": outcome.cause}
    with _keeping:  # rows end side by side
        TRACES.mkdir(parents=True, exist_ok=True)
        (TRACES / trace_name(outcome)).write_bytes(recorded.read_bytes())
        kept = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
        kept[trace_name(outcome)] = told
        VERDICTS.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
