"""The same faults under the other tools: what each says, how long after the fault, and the ratio to vigil in the same run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench_figures import load, machine
from peers.compare import FAULTS, PEERS, table

OURS = "vigil"
FASTEST_S = 0.01  # a delay below this is this: a ratio against nearly nothing says nothing
# Who hears of a hanging request only from the lack of an answer needs a minute: law 7 forbids to call it sooner.
PATIENT_FAULT, PATIENT_S = "200, hangs", 75.0
AT_ONCE = 3  # nearly all of a trial is waiting; vigil's own short ones are played alone


def measure(path: Path, budget_s: float) -> str:
    """Run every peer on every fault, keep the result, return the tables as text."""
    before, began = load(), time.strftime("%Y-%m-%d %H:%M:%S %z")
    short = [fault.name for fault in FAULTS if fault.name != PATIENT_FAULT]
    others = [peer.name for peer in PEERS if peer.name != OURS]
    with tempfile.TemporaryDirectory(prefix="vigil-peers-") as folder:
        rows = play(Path(folder), OURS, short, budget_s)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            trials = [pool.submit(play, Path(folder), peer, short, budget_s) for peer in others]
            patient = [pool.submit(play, Path(folder), peer, [PATIENT_FAULT], PATIENT_S) for peer in (OURS, *others)]
            rows += [row for trial in (*trials, *patient) for row in trial.result()]
    order = [peer.name for peer in PEERS], [fault.name for fault in FAULTS]
    rows.sort(key=lambda row: (order[0].index(row["peer"]), order[1].index(row["fault"])))
    result = {
        "schema": 1,
        "date": began,
        "machine": machine(),
        "load": before,
        "budget_s": budget_s,
        f"budget_s of '{PATIENT_FAULT}'": PATIENT_S,
        "trials_at_once": AT_ONCE,
        "rows": rows,
        "ratios": ratios(rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    lines = [f"{row['peer']:20} {row['told']}" for row in result["ratios"]]
    return "\n".join(
        [table(result), "", "right answers, and how many times as long as vigil took for the same:", *lines]
    )


def play(folder: Path, peer: str, faults: Iterable[str], budget_s: float) -> list[dict[str, Any]]:
    """Play faults under one peer in a process of its own, which ends all that it started; return the rows."""
    target = folder / f"{peer}-{budget_s:g}.json".replace(" ", "-").replace("/", "-")
    words = ["--json", str(target), "--budget", f"{budget_s:g}", "--peer", peer]
    words += [word for fault in faults for word in ("--fault", fault)]
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "peers.compare", *words], cwd=here, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{peer}: {done.stderr[-2000:]}")
    print(f"peers: {peer}: {len(done.stderr.splitlines())} faults played", file=sys.stderr, flush=True)
    rows: list[dict[str, Any]] = json.loads(target.read_text())["rows"]
    return rows


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each peer, how many answers were right, and how many times as long as vigil each of those took."""
    ours = {row["fault"]: row["seconds"] for row in rows if row["peer"] == OURS and row["judged"] == "right"}
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
