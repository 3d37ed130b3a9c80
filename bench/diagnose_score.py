"""Scores `vigil.diagnosis` on labelled cases by whether it points at the right line.

Usage: PYTHONPATH=packages/vigil/src python bench/diagnose_score.py CASES.jsonl [--misses]

The file holds one case a line (as `corpus/cases.jsonl`), with `log` (lines), `root_cause_line_index` (from 0, or null
for a healthy server), `engine` and `category`. The way the process ended is not in such cases, so that they are
diagnosed as a death before readiness with exit code 1; cases labelled null are diagnosed without a code, as a server
that served.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from vigil.diagnosis import Cause, End, diagnose
from vigil.facts import Line

ENGINES = {"llama-server": "llamacpp", "trtllm-serve": "trtllm"}


def diagnose_case(case: dict[str, Any]) -> Cause | None:
    lines = [Line(number, text) for number, text in enumerate(case["log"], 1)]
    healthy = case["root_cause_line_index"] is None
    end = End(ready=True) if healthy else End(code=1)
    return diagnose(lines, end, ENGINES.get(case["engine"], case["engine"]))


def judge(case: dict[str, Any], cause: Cause | None) -> str:
    root = case["root_cause_line_index"]
    if cause is None:
        return "right" if root is None else "silent"
    if cause.line is None:
        return "no line"
    if root is not None and cause.line == root + 1:
        return "right"
    return "decoy" if cause.line - 1 in case.get("decoy_line_indexes", []) else "other line"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--misses", action="store_true", help="print what went wrong, one case a line")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text("utf-8").splitlines() if line.strip()]
    began = time.perf_counter()
    results = [(case, cause, judge(case, cause)) for case in cases for cause in [diagnose_case(case)]]
    took_s = time.perf_counter() - began
    counts = Counter(verdict for _, _, verdict in results)
    right = counts["right"]
    kinds = sum(1 for case, cause, v in results if v == "right" and (cause is None or cause.kind == case["category"]))
    print(f"top-1 line: {right}/{len(cases)} = {right / max(1, len(cases)):.1%}  ({dict(counts)})")
    print(f"line and category: {kinds}/{len(cases)}; {took_s / max(1, len(cases)) * 1000:.2f} ms a case")
    if options.misses:
        for case, cause, verdict in results:
            if verdict != "right":
                print(f"{verdict:10} {case['id']:18} {case['category']:22} {cause and (cause.code, cause.text[:90])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
