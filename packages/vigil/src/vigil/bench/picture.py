"""Draw results: throughput and one user's speed against concurrency, latency against rate, all arms in one, with intervals.

matplotlib is imported when something is drawn, and comes with `vigil-serve[pictures]`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from vigil.bench.figures import Figure
from vigil.bench.intervals import Interval
from vigil.bench.report import Report
from vigil.errors import UsageError

WIDTH_IN, HEIGHT_IN, DPI = 9.0, 3.9, 150
COLOURS = ("#1f5fa8", "#d1661c", "#2f8f4e", "#8a3fa0", "#b0283a", "#5a6570")
MARKS = ("o", "s", "^", "D", "v", "P")
Value = Callable[[Figure], Interval | None]


def draw(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Draw reports into a folder as PNG and SVG; return the files. Raises `UsageError` where they cannot be written."""
    figures = labelled(reports)
    title = "  |  ".join(dict.fromkeys(report.meta.title for report in reports))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        if any(one.point.kind == "concurrency" for one in figures):
            made += _closed([one for one in figures if one.point.kind == "concurrency"], title, folder)
        if any(one.point.kind == "rate" for one in figures):
            made += _open([one for one in figures if one.point.kind == "rate"], title, folder)
    except OSError as error:
        raise UsageError(f"--pictures {folder}: {error.strerror or error}") from error
    if not made:
        raise UsageError("there is no measurement to draw")
    return made


def labelled(reports: Sequence[Report]) -> list[Figure]:
    """Return all figures; where two results have an arm of one name, the result's own number is added."""
    found: list[Figure] = []
    taken: set[str] = set()
    for number, report in enumerate(reports, 1):
        arms = {one.arm for one in report.figures}
        clash = bool(arms & taken)
        taken |= arms
        found += [
            msgspec.structs.replace(one, arm=f"{one.arm} ({number})" if clash else one.arm) for one in report.figures
        ]
    return found


def _closed(figures: Sequence[Figure], title: str, folder: Path) -> list[Path]:
    panels: list[tuple[str, Value]] = [
        ("output tokens a second", lambda one: one.output_per_s),
        ("tokens a second for one user", lambda one: one.user_per_s),
    ]
    return _picture(figures, panels, "concurrent requests", title, folder / "throughput")


def _open(figures: Sequence[Figure], title: str, folder: Path) -> list[Path]:
    panels: list[tuple[str, Value]] = [
        ("seconds to the first token", lambda one: one.ttft_s),
        ("seconds per token", lambda one: one.tpot_s),
    ]
    return _picture(figures, panels, "requests a second", title, folder / "latency")


def _picture(
    figures: Sequence[Figure], panels: Sequence[tuple[str, Value]], below: str, title: str, path: Path
) -> list[Path]:
    from matplotlib.figure import Figure as Sheet  # noqa: PLC0415 - it takes a second, and may not be installed

    sheet = Sheet(figsize=(WIDTH_IN, HEIGHT_IN), dpi=DPI, layout="constrained")
    axes = sheet.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, value) in zip(axes, panels, strict=True):
        for index, arm in enumerate(dict.fromkeys(one.arm for one in figures)):
            _line(axis, [one for one in figures if one.arm == arm], value, index)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        axis.set_ylim(bottom=0)
        axis.set_xlabel(below)
        axis.set_title(name, fontsize=10)
        axis.grid(visible=True, alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    sheet.suptitle(title[:120], fontsize=11)
    made = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for file in made:
        sheet.savefig(file)
    return made


def _line(axis: Any, figures: Sequence[Figure], value: Value, index: int) -> None:
    """Draw one arm, with its interval as a band."""
    known = [(one.point.value, found) for one in figures if (found := value(one)) is not None]
    if not known:
        return
    at = [x for x, _ in known]
    colour, mark = COLOURS[index % len(COLOURS)], MARKS[index % len(MARKS)]
    axis.plot(at, [found.value for _, found in known], color=colour, marker=mark, markersize=4, label=figures[0].arm)
    low = [found.value if found.low is None else max(0.0, found.low) for _, found in known]
    high = [found.value if found.high is None else found.high for _, found in known]
    axis.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
