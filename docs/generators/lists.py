"""The page of the lists of broken and good commands, from what `bench/check_score.py` left in docs/results/check.json."""

import json
from pathlib import Path
from typing import Any

from generators.markdown import code, page, prose, table
from generators.results import circumstances, rows_table

KEPT = Path(__file__).parent.parent / "results" / "check.json"
INTRO = """`bench/check_score.py` puts every case of `tests/preflight/*.toml` through the checks and keeps the outcome. Broken
commands and folders must be refused for the right cause, with the right correction where one can be pasted; no good one may be.
Every case says where it is from. Folders are made for real; flags are held against the tables of the case's release."""
TIMES = """The first story's command, as a user types it, in a process of its own. *Warm*: the engine's parser was read before;
*cold*: with an empty state folder; *tables*: the engine is not on this host."""


def pages() -> dict[str, str]:
    """Return the page by its path."""
    kept = json.loads(KEPT.read_text("utf-8"))
    broken, good = ([one for one in kept["cases"] if one["broken"] is wanted] for wanted in (True, False))
    circumstance = circumstances({name: one for name, one in kept.items() if name in {"date", "machine"}})
    parts = [
        circumstance,
        rows_table(kept["lists"]),
        "## Times",
        TIMES,
        rows_table(kept["times"]),
        "## Broken",
        table(["case", "command", "refused as", "said", "corrected", "from"], map(_broken, broken)),
        "## Good",
        table(["case", "command", "from"], map(_good, good)),
    ]
    return {"check-lists.md": page("What is refused, and what is not", "docs/results/check.json", INTRO, *parts)}


def _broken(case: dict[str, Any]) -> list[str]:
    mark = code(case["code"]) if case["right"] else f"**not right**: {code(case['code'] or 'not refused')}"
    corrected = code(case["corrected"]) if case["corrected"] else ""
    return [prose(case["name"]), code(case["command"]), mark, prose(case["said"]), corrected, prose(case["source"])]


def _good(case: dict[str, Any]) -> list[str]:
    refused = f" **refused**: {code(case['code'])}" if case["refused"] else ""
    return [prose(case["name"]) + refused, code(case["command"]), prose(case["source"])]
