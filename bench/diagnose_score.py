"""Scores `vigil.diagnosis` on labelled cases: does it point at the right line, with the right kind, and is it fast.

Usage: PYTHONPATH=packages/vigil/src python bench/diagnose_score.py CASES.jsonl [--misses] [--advice]

The file holds one case a line (as `corpus/cases.jsonl`), with `log` (lines), `root_cause_line_index` (from 0, or null for
a healthy server), `engine`, `version` and `category`. How the process ended is not in such cases, so that all of them,
healthy ones too, are diagnosed by their lines alone, as `vigil diagnose FILE` does. A log of several lives is split
where a line of a start comes a second time; the last life with a cause answers for it, as the corpus asks.

The line counts where its wording is not marked as inferred; the kind counts in all cases. For a start that stands still
without an error, the line is that of the phase it stands in.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from vigil.diagnosis import End, Findings, examine
from vigil.engine_table import EngineTable
from vigil.engines import table
from vigil.facts import Line

ENGINES = {"llama-server": "llamacpp", "trtllm-serve": "generic"}
BEGINS = (
    "vLLM API server version",
    "Initializing a V1 LLM engine",
    "server_args=",
    "build: ",
    "common_params_print_info",
)


class Answer(NamedTuple):
    """What was said of one case; `line` counts from 0."""

    line: int | None
    kind: str | None
    code: str
    text: str
    advice: str
    others: tuple[int | None, ...] = ()


def table_of(case: dict[str, Any]) -> EngineTable | None:
    name = ENGINES.get(case["engine"], case["engine"])
    return None if name == "generic" else table(name)


def version_of(case: dict[str, Any]) -> str | None:
    found = re.match(r"~?(\d+\.\d+(?:\.\d+)?|b\d+)", case.get("version") or "")
    return found[1] if found else None


def lives(lines: list[Line]) -> list[list[Line]]:
    """Split at each repetition of the first text of a start that stands more than once."""
    for text in BEGINS:
        starts = [i for i, line in enumerate(lines) if text in line.text]
        if len(starts) > 1 or (
            starts and starts[0] > 0 and any("Shutting down" in one.text for one in lines[: starts[0]])
        ):
            bounds = sorted({0, *starts}) if starts[0] else starts
            return [lines[a:b] for a, b in zip(bounds, [*bounds[1:], len(lines)], strict=True)]
    return [lines]


def ask(case: dict[str, Any]) -> Answer:
    lines = [Line(number, text) for number, text in enumerate(case["log"], 1)]
    found: list[Findings] = [examine(life, End(), table_of(case), version=version_of(case)) for life in lives(lines)]
    told = next((one for one in reversed(found) if one.cause), found[-1])
    if told.cause is not None:
        cause, others = told.cause, tuple(one.line and one.line - 1 for one in told.candidates)
        line = cause.line - 1 if cause.line is not None else None
        return Answer(line, cause.kind, cause.code, cause.text, cause.advice, others)
    if told.stuck is not None:
        stuck = told.stuck
        return Answer(stuck.line and stuck.line - 1, stuck.kind, f"in {stuck.phase}", stuck.text, "")
    return Answer(None, None, "-", "", "")


def judge(case: dict[str, Any], answer: Answer) -> str:
    root = case["root_cause_line_index"]
    if root is None:
        return "right" if answer.line is None or answer.code.startswith("in ") else "false alarm"
    if answer.line is None:
        return "silent"
    if answer.line == root:
        return "right"
    return "decoy" if answer.line in case.get("decoy_line_indexes", []) else "other line"


def kind_right(case: dict[str, Any], answer: Answer, verdict: str) -> bool:
    return verdict == "right" if case["root_cause_line_index"] is None else answer.kind == case["category"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--misses", action="store_true", help="print what went wrong, one case a line")
    parser.add_argument("--advice", action="store_true", help="print each advice beside the known fix, to be read")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text("utf-8").splitlines() if line.strip()]
    began = time.perf_counter()
    results = [(case, answer, judge(case, answer)) for case in cases for answer in [ask(case)]]
    took_s = time.perf_counter() - began
    sure = [one for one in results if one[0].get("root_text") != "inferred"]
    for name, rows in (("wording not inferred", sure), ("all", results)):
        lines = sum(verdict == "right" for _, _, verdict in rows)
        kinds = sum(kind_right(*row) for row in rows)
        print(f"{name:20} line {lines}/{len(rows)} = {lines / max(1, len(rows)):.1%}   kind {kinds}/{len(rows)}")
    print(f"{dict(Counter(verdict for _, _, verdict in results))}; {took_s / max(1, len(cases)) * 1000:.2f} ms a case")
    for case, answer, verdict in results:
        if options.misses and not (verdict == "right" and kind_right(case, answer, verdict)):
            wording = "inferred" if case.get("root_text") == "inferred" else ""
            found = (answer.code, answer.kind, answer.text[:90])
            print(f"{verdict:11} {case['id']:18} {wording:8} {case['category']:22} {found}")
        if options.advice:
            print(f"{case['id']} {answer.code} {verdict}\n  fix:    {case['fix_one_line']}\n  advice: {answer.advice}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
