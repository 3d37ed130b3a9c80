"""Compare what each peer says about the same faults, one trial after another, and how long after the fault it says it.

    PYTHONPATH=bench .venv/bin/python -m peers.compare [--json FILE] [--budget 30] [--peer NAME]... [--fault NAME]...

The server is the fake of tests/fakes in vLLM's dress: its marks say when the fault struck, or when a token could first
be had. Trials do not overlap: on two cores a second one would disturb the times of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from peers.adapters import ROOT, WAITING, Answer, Peer, Said, Trial
from peers.processes import adopt_orphans, end_all
from peers.supervisors import SUPERVISORS

PEERS: tuple[Peer, ...] = (*WAITING, *SUPERVISORS)
FAKES = ROOT / "tests/fakes"
CLOCK_S = 0.05  # two processes that note the same moment may differ by this much
# `late`: the peer gave up or said nothing, which is not false and helps nobody.
Judged = Literal["right", "wrong", "late"]
MARKS: dict[Judged, str] = {"right": "+", "wrong": "X", "late": "-"}


@dataclass(frozen=True)
class Fault:
    """One thing to play: the fake's flags, the mark that time is counted from, and the answers that are true."""

    name: str
    flags: tuple[str, ...]
    true: frozenset[Answer]
    mark: str = "FAULT"
    wrapped: bool = False  # under a shell loop that starts it again a second after each death

    def argv(self, port: int, mark_file: Path) -> list[str]:
        """Return the server's command."""
        server = [str(FAKES / "bin/vllm"), "serve", "fake-model", "--host", "127.0.0.1", "--port", str(port)]
        loop = ["sh", str(FAKES / "loop.sh"), "--pause", "1", "--"] if self.wrapped else []
        return [*loop, *server, "--mark", str(mark_file), *self.flags]


LONG_LOAD = ("--load", "300s", "--after", "2s")
SHORT_LOAD = ("--load", "1800ms", "--warmup", "200ms")
FAILED: frozenset[Answer] = frozenset({"failed"})
FAULTS: tuple[Fault, ...] = (
    Fault("healthy at 2 s", SHORT_LOAD, frozenset({"ready"}), mark="TOKENS"),
    Fault("exit 1 at 2 s", (*LONG_LOAD, "--die", "exit:1"), FAILED),
    Fault("exit 0 at 2 s", (*LONG_LOAD, "--die", "exit:0"), FAILED),
    Fault("loop, wrapper", (*LONG_LOAD, "--die", "exit:1"), frozenset({"failed", "looping"}), wrapped=True),
    Fault("silent stall", (*LONG_LOAD, "--stick", "sleep"), frozenset({"stalled"})),
    Fault("200, hangs", (*SHORT_LOAD, "--lie", "hang", "--at", "bound"), FAILED),
    Fault("200, fails", (*SHORT_LOAD, "--lie", "fail", "--at", "bound"), FAILED),
)


@dataclass(frozen=True)
class Row:
    """The outcome of one trial; `seconds` from the mark to the verdict, negative where the peer spoke first."""

    fault: str
    peer: str
    version: str
    answer: Answer
    judged: Judged
    text: str
    seconds: float | None


def free_port() -> int:
    """Return a loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_mark(file: Path, kind: str) -> float | None:
    """Return the Unix time of the fake's first mark of this kind."""
    lines = file.read_text().splitlines() if file.exists() else []
    times = [float(line.split()[1]) for line in lines if line.startswith(f"{kind} ")]
    return min(times, default=None)


def judge(fault: Fault, said: Said, seconds: float | None) -> Judged:
    """Hold the answer against the truth: also a "ready" from before the first token could be had is wrong."""
    early = said.answer == "ready" and (seconds is None or seconds < -CLOCK_S)
    if said.answer in fault.true and not early:
        return "right"
    return "late" if said.answer in {"timed out", "silent"} else "wrong"


def try_one(peer: Peer, fault: Fault, budget_s: float) -> Row:
    """Run one trial in a folder of its own and end all that it started."""
    with tempfile.TemporaryDirectory(prefix="vigil-peers-", ignore_cleanup_errors=True) as folder:
        marks = Path(folder) / "marks"
        port = free_port()
        trial = Trial(argv=fault.argv(port, marks), port=port, folder=Path(folder), budget_s=budget_s)
        try:
            said = peer.start(trial)()
        finally:
            end_all()
        mark = first_mark(marks, fault.mark)
    seconds = None if mark is None else round(said.at_unix_s - mark, 3)
    judged = judge(fault, said, seconds)
    return Row(fault.name, peer.name, peer.version, said.answer, judged, said.text[:200], seconds)


def compare(peers: Iterable[Peer] = PEERS, faults: Sequence[Fault] = FAULTS, budget_s: float = 30.0) -> dict[str, Any]:
    """Run every peer on every fault; return the table with the machine and the date, ready for JSON."""
    adopt_orphans()
    rows = []
    for peer in peers:
        for fault in faults:
            rows.append(try_one(peer, fault, budget_s))
            print(f"{peer.name} · {fault.name}: {rows[-1].answer} ({rows[-1].text})", file=sys.stderr, flush=True)
    return {
        "schema": 1,
        "what": "peers: verdict and seconds from the fault (or the first token) to it",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "budget_s": budget_s,
        "rows": [asdict(row) for row in rows],
    }


def table(result: dict[str, Any]) -> str:
    """Lay the result out as Markdown: a row a peer, a column a fault."""
    rows = result["rows"]
    faults = list(dict.fromkeys(row["fault"] for row in rows))
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        seconds = "?" if row["seconds"] is None else f"{row['seconds']:.1f}"
        said = f"{MARKS[row['judged']]} {row['answer']} {seconds}"
        cells.setdefault(f"{row['peer']} ({row['version']})", {})[row["fault"]] = said
    grid = [["", *faults], *([peer, *(said.get(fault, "") for fault in faults)] for peer, said in cells.items())]
    widths = [max(len(line[column]) for line in grid) for column in range(len(grid[0]))]
    lines = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in grid]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    key = f"+ right, X wrong, - gave up or said nothing; seconds from the fault; budget {result['budget_s']:g} s"
    return "\n".join([*lines, "", key])


def main() -> None:
    """Read the flags, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds each peer may take (default 30)")
    parser.add_argument("--peer", action="append", help="only peers whose name begins so")
    parser.add_argument("--fault", action="append", help="only faults whose name begins so")
    asked = parser.parse_args()
    peers = [peer for peer in PEERS if not asked.peer or peer.name.startswith(tuple(asked.peer))]
    faults = [fault for fault in FAULTS if not asked.fault or fault.name.startswith(tuple(asked.fault))]
    if not peers or not faults:
        parser.error("no such peer or fault")
    result = compare(peers, faults, asked.budget)
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


if __name__ == "__main__":
    main()
