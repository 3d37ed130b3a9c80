"""Draw results as PNG and SVG: throughput and one user's speed against concurrency, latency against rate, all arms in one.

matplotlib is imported when something is drawn, and comes with `vigil-serve[pictures]`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vigil.bench.origin import place
from vigil.bench.panels import Panel, Series, panels_of
from vigil.bench.report import Report
from vigil.errors import UsageError

WIDTH_IN, HEIGHT_IN, DPI = 4.5, 3.9, 150
COLOURS = ("#1f5fa8", "#d1661c", "#2f8f4e", "#8a3fa0", "#b0283a", "#5a6570")
MARKS = ("o", "s", "^", "D", "v", "P")
FILES = {"concurrency": "throughput", "rate": "latency"}
CLOSEST = 1.25  # loads nearer than this by their ratio have no room for a number each


def draw(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Draw reports into a folder as PNG and SVG; return the files. Raises `UsageError` where they cannot be written."""
    panels = panels_of(reports)
    title = "  |  ".join(dict.fromkeys(place(report) or report.meta.title for report in reports))
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, name in FILES.items():
            some = [one for one in panels if one.kind == kind]
            if some:
                made += _picture(some, title, folder / name)
    except OSError as error:
        raise UsageError(f"--pictures {folder}: {error.strerror or error}") from error
    if not made:
        raise UsageError("there is no measurement to draw")
    return made


def _picture(panels: Sequence[Panel], title: str, path: Path) -> list[Path]:
    from matplotlib.figure import Figure as Sheet  # noqa: PLC0415 - it takes a second, and may not be installed
    from matplotlib.patches import Patch  # noqa: PLC0415 - as above

    sheet = Sheet(figsize=(WIDTH_IN * len(panels), HEIGHT_IN), dpi=DPI, layout="constrained")
    for axis, panel in zip(sheet.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for series in panel.series:
            _line(axis, series)
        _dress(axis, panel)
    handles, labels = sheet.axes[0].get_legend_handles_labels()
    if any(interval.low is not None for panel in panels for one in panel.series for _, interval in one.points):
        handles, labels = [*handles, Patch(color="0.8")], [*labels, "95 %"]
    sheet.legend(handles, labels, frameon=False, fontsize=9, loc="outside lower center", ncols=len(labels))
    sheet.suptitle(title[:120], fontsize=11)
    made = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for file in made:
        sheet.savefig(file)
    return made


def _dress(axis: Any, panel: Panel) -> None:
    """Give a panel its axes: each measured load has its number, as far as there is room."""
    axis.set_xscale("log", base=2)
    shown: list[float] = []
    for load in panel.loads:
        if not shown or load / shown[-1] >= CLOSEST:
            shown.append(load)
    axis.set_xticks(shown, [f"{load:g}" for load in shown])
    axis.minorticks_off()
    axis.set_ylim(0, panel.top * 1.05)
    axis.yaxis.set_major_formatter(lambda y, _: f"{y:,.4g}" if y < 1000 else f"{y:,.0f}")  # noqa: PLR2004
    axis.set_xlabel(panel.below)
    axis.set_title(panel.title, fontsize=10)
    axis.grid(visible=True, alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _line(axis: Any, series: Series) -> None:
    """Draw one arm, with its intervals as a band."""
    at = [load for load, _ in series.points]
    found = [interval for _, interval in series.points]
    colour, mark = COLOURS[series.index % len(COLOURS)], MARKS[series.index % len(MARKS)]
    axis.plot(at, [one.value for one in found], color=colour, marker=mark, markersize=4, label=series.arm)
    low = [one.value if one.low is None else max(0.0, one.low) for one in found]
    high = [one.value if one.high is None else one.high for one in found]
    axis.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
