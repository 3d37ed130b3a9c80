"""What a benchmark says: rows with median, p95 and the target beside them; the machine and its load."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measurement: `values` in `unit`. The target is for p95, or with `at_least` for the median.

    `failed`: events that gave no figure; with one of them no target is reached.
    """

    what: str
    unit: str
    values: tuple[float, ...]
    target: float | None = None
    at_least: bool = False
    note: str = ""
    failed: int = 0

    @property
    def median(self) -> float:
        """Return the middle of the values."""
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        """Return the value that nineteen of twenty do not exceed (the nearest rank, so always one that was measured)."""
        return sorted(self.values)[max(0, math.ceil(0.95 * len(self.values)) - 1)]

    @property
    def reached(self) -> bool | None:
        """Say whether the target is reached; None where there is none."""
        if self.target is None:
            return None
        judged = self.median if self.at_least else self.p95
        if self.failed:
            return False
        return judged >= self.target if self.at_least else judged <= self.target

    def row(self) -> dict[str, Any]:
        """Return the figure as a row of the table, for JSON."""
        reached = self.reached
        return {
            "what": self.what,
            "unit": self.unit,
            "median": shorten(self.median),
            "p95": shorten(self.p95) if len(self.values) > 1 else None,
            "worst": shorten(min(self.values) if self.at_least else max(self.values)),
            "n": len(self.values),
            "target": None if self.target is None else f"{'>=' if self.at_least else '<='} {self.target:g}",
            "reached": None if reached is None else "yes" if reached else "NO",
            "note": f"{self.failed} more gave no figure; {self.note}" if self.failed else self.note,
        }


def gathered(what: str, unit: str, values: Iterable[float | None], target: float, note: str = "") -> Figure:
    """Return the figure of events, of which some may have given none."""
    all_values = tuple(values)
    known = tuple(value for value in all_values if value is not None)
    if not known:
        raise RuntimeError(f"{what}: not one of {len(all_values)} gave a figure")
    return Figure(what, unit, known, target, note=note, failed=len(all_values) - len(known))


def shorten(value: float) -> float:
    """Return a number with the digits that a reader can use."""
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def cpu_name() -> str:
    """Return the processor's name as the kernel tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def lay_out(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows as a table of text."""
    head = ("what", "unit", "median", "p95", "worst", "n", "target", "reached", "note")
    grid = [head, *(tuple("" if row[name] is None else str(row[name]) for name in head) for row in rows)]
    widths = [max(len(line[column]) for line in grid) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in grid)
