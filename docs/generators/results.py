"""The page of measurements, from the JSON files that the benchmarks left in docs/results/. Any of them may be missing."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.markdown import code, page, prose, table

FOLDER = Path(__file__).parent.parent / "results"
MOST_ROWS = 200
KNOWN = {
    "faults": (
        "Faults",
        "`make faults` plays every fault of the table with the real command line, here and over a real `sshd` on loopback.",
    ),
    "peers": (
        "Peers",
        "`make bench` plays the same faults under other tools, each in its own environment. Seconds from fault to answer.",
    ),
    "bench": ("Speed and cost", "`make bench` measures these, median and p95."),
    "replay": ("Replay", "`make bench` replays a long trace, decoding included."),
}


def pages() -> dict[str, str]:
    """Return the page by its path."""
    found = sorted(
        FOLDER.glob("*.json"), key=lambda path: (list(KNOWN).index(path.stem) if path.stem in KNOWN else 99, path.stem)
    )
    parts = [part for path in found for part in file_parts(path)]
    missing = [code(f"{name}.json") for name in KNOWN if not (FOLDER / f"{name}.json").exists()]
    intro = "Every table here is made from a JSON file in `docs/results/`, with the machine and the date of the run."
    absent = f"Not measured yet, or not kept: {', '.join(missing)}." if missing else ""
    return {"results.md": page("Measurements", "docs/results/*.json", intro, absent, *parts)}


def file_parts(path: Path) -> list[str]:
    """Return the section of one file."""
    title, how = KNOWN.get(path.stem, (path.stem, ""))
    value = json.loads(path.read_text("utf-8"))
    parts = [f"## {title}", how]
    for name, run in runs(value):
        parts += [f"### {name}" if name else "", circumstances(run), *tables(path.stem, run)]
    return parts


def runs(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the runs that a file holds, by name: it is one run itself, or holds several by name."""
    if not isinstance(value, dict):
        yield "", {"rows": value if isinstance(value, list) else []}
    elif (
        value and all(isinstance(one, dict) for one in value.values()) and any("date" in one for one in value.values())
    ):
        yield from value.items()
    else:
        yield "", value


def circumstances(run: dict[str, Any]) -> str:
    """Return machine, date and the other single values of a run."""
    told = []
    for name, value in run.items():
        if isinstance(value, dict) and name == "machine":
            told.append(f"machine: {', '.join(f'{key} {cell(one)}' for key, one in value.items())}")
        elif not isinstance(value, dict | list) and name != "schema":
            told.append(f"{name}: {cell(value)}")
    return prose(" · ".join(told))


def tables(stem: str, run: dict[str, Any]) -> list[str]:
    """Return the tables of a run."""
    found = []
    for name, value in run.items():
        if not isinstance(value, list | dict) or name == "machine" or not value:
            continue
        rows = (
            value
            if isinstance(value, list)
            else [{"what": key, **(one if isinstance(one, dict) else {"value": one})} for key, one in value.items()]
        )
        if not all(isinstance(row, dict) for row in rows):
            found.append(prose(f"{name}: {cell(value)}"))
        elif stem == "faults" and "fault" in rows[0]:
            found.append(faults_table(rows))
        elif stem == "peers" and "peer" in rows[0]:
            found.append(peers_table(rows))
        else:
            found.append(rows_table(rows))
    return found


def rows_table(rows: list[dict[str, Any]]) -> str:
    """Return rows as they are, with every column that one of them has; what is nested stays in the file."""
    head = list(dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, dict)))
    return table(
        [prose(name) for name in head], ([prose(cell(row.get(name))) for name in head] for row in rows[:MOST_ROWS])
    )


def faults_table(rows: list[dict[str, Any]]) -> str:
    """Return one row a fault: how often it was as expected, and how long the verdict took, here and over ssh."""
    places = list(dict.fromkeys(row["where"] for row in rows))
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["group"], row["fault"]), []).append(row)
    head = ["group", "fault", "expected", *(column for place in places for column in (place, "median s"))]
    lines = []
    for (group, fault), played in grouped.items():
        line = [prose(group), prose(fault), ", ".join(map(code, played[0]["expected"]))]
        for place in places:
            there = [row for row in played if row["where"] == place]
            after = [row["after_s"] for row in there if row.get("after_s") is not None]
            line.append(f"{sum(bool(row['ok']) for row in there)} of {len(there)}" if there else "")
            line.append(f"{statistics.median(after):.3f}" if after else "")
        lines.append(line)
    right = sum(bool(row["ok"]) for row in rows)
    return f"{right} of {len(rows)} as expected.\n\n{table(head, lines)}"


def peers_table(rows: list[dict[str, Any]]) -> str:
    """Return a row a peer, a column a fault."""
    faults = list(dict.fromkeys(row["fault"] for row in rows))
    peers: dict[str, dict[str, str]] = {}
    for row in rows:
        seconds = "" if row.get("seconds") is None else f", {row['seconds']:.2f} s"
        peers.setdefault(f"{row['peer']} {row.get('version') or ''}".strip(), {})[row["fault"]] = (
            f"**{prose(str(row['judged']))}** {prose(str(row['answer']))}{seconds}"
        )
    lines = ([prose(peer), *(said.get(fault, "") for fault in faults)] for peer, said in peers.items())
    return table(["", *(prose(fault) for fault in faults)], lines)


def cell(value: Any) -> str:
    """Return a value in words."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", " ")  # noqa: PLR2004 - no decimals from here on
    if isinstance(value, list):
        return ", ".join(cell(one) for one in value)
    return json.dumps(value) if isinstance(value, dict) else str(value)
