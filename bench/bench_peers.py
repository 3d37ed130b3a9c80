"""The same faults under the other tools: what each says, how long after the fault, and the ratio to vigil in the same run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_figures import load, machine
from peers.compare import compare, table

FASTEST_S = 0.01  # a delay below this is this: a ratio against nearly nothing says nothing


def measure(path: Path, budget_s: float) -> str:
    """Run every peer on every fault, keep the result, return the tables as text."""
    before = load()
    result = compare(budget_s=budget_s)
    result = {**result, "machine": machine(), "load": before, "ratios": ratios(result["rows"])}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    lines = [f"{row['peer']:20} {row['told']}" for row in result["ratios"]]
    return "\n".join(
        [table(result), "", "right answers, and how many times as long as vigil took for the same:", *lines]
    )


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each peer, how many answers were right, and how many times as long as vigil each of those took."""
    ours = {row["fault"]: row["seconds"] for row in rows if row["peer"] == "vigil" and row["judged"] == "right"}
    peers: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        peers.setdefault(row["peer"], []).append(row)
    return [_ratio(peer, played, ours) for peer, played in peers.items()]


def _ratio(peer: str, played: list[dict[str, Any]], ours: dict[str, float | None]) -> dict[str, Any]:
    """Return the row of one peer."""
    times = {}
    for row in played:
        own, theirs = ours.get(row["fault"]), row["seconds"]
        if row["judged"] == "right" and own is not None and theirs is not None:
            times[row["fault"]] = max(theirs, FASTEST_S) / max(own, FASTEST_S)
    counts = {judged: sum(row["judged"] == judged for row in played) for judged in ("right", "wrong", "late")}
    told = ", ".join(
        f"{fault} x{ratio:.0f}" if ratio >= 2 else f"{fault} x{ratio:.1f}" for fault, ratio in times.items()
    )
    return {"peer": peer, **counts, "told": f"{counts['right']} of {len(played)} right: {told or 'none'}"}
