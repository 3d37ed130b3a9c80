"""The page of measurements, from the JSON files that the benchmarks left in docs/results/. Any of them may be missing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.markdown import code, page, prose, table

FOLDER = Path(__file__).parent.parent / "results"
MOST_ROWS = 200
PEERS = """`make bench` plays the same faults under other tools, each as its users use it, in its own environment, one
after another. The server is the fake one in vLLM's dress, whose side file says when the fault struck. Seconds
from then (for the healthy server: from its first possible token) to the answer; negative where the tool spoke
before. *right*: a true answer; *wrong*: a false one; *late*: it gave up or said nothing."""
BENCH = """`make bench` measures these, median and p95 (the nearest rank) of `n` events. Deaths: from the moment that the
dying process notes just before it exits until the verdict is in the caller's hands, or its line has come.
Starts: from the moment from which the server would serve a token (the real one: the sending of the first
request that was answered to a prober that asks every 2 ms). Cost: processor time of vigil and launcher by the
kernel's own clocks. `load` is the machine's load average before each part."""
DIAGNOSIS = """`make diagnose-score` has each way of looking read a log, of which nothing but the bytes is known: 112 public
reports reduced to log lines (a good third is set aside by a hash of its id and was not looked at while rules were written),
further public reports that were collected later, each labelled before it was tried (by now all looked at), and real logs.
The second table counts, of what is set aside, the kinds that are not always known.
*line*: the line that states the cause is named exactly, in the cases whose wording is not inferred; *kind*: the category of
the taxonomy; *decoys taken*: a line was named that only looks like the cause."""
SCANNING = """`make diagnose-score` measures these, too: a log of a gigabyte with a line in a thousand worth a look and bars in
it, one with a line in ten, and one that another process writes at 50 MB/s. Seconds of one core; memory is the process's peak."""
CLIENT = """`bench/client_ceiling.py` has clients stream from a fake server that offers a known number of tokens a second, each
in a process of its own, round after round; every client decodes, times and counts each event. *tokens per cpu s*: what one whole
core would take; *ratio*: ours over it, the median of the rounds."""
CEILINGS = """`bench/tool_ceilings.py` has whole load generators hold 1,000 requests open on the same fake. *true tokens/s*: what
the fake gave; *said*: the tool's own figure; *off true*: how far its latencies are from what the fake kept of the same requests;
*cpu s*: that of all its processes without their start."""
AGREEMENT = """`bench/agreement.py` measures the same servers with each tool in turn, as many requests of the same lengths with
the same number open. *off*: the share by which vigil's median differs from that tool's. *true*: what the fake itself kept of a
tool's own requests, from a request's last byte on; *off true*: how far the tool is from that. See
[measuring](bench.md#beside-other-tools)."""
AGREEMENT_H200 = """`tests/gpu/agreement.sh` does the same on a real SGLang on an H200, whose steps of about a millisecond
leave a client little time. SGLang's own benchmark is the only other tool on that machine."""
ELSEWHERE = {"check"}  # has a page of its own: check-lists.md
KNOWN = {
    "faults": (
        "Faults",
        "`make faults` plays every fault of the table with the real command line, here and over a real `sshd` on loopback.",
    ),
    "diagnosis": ("Diagnosis", DIAGNOSIS),
    "scanning": ("Speed of the diagnosis", SCANNING),
    "peers": ("Peers", PEERS),
    "bench": ("Speed and cost", BENCH),
    "client": ("The load generator's client", CLIENT),
    "ceilings": ("Ceilings of load generators", CEILINGS),
    "agreement": ("Agreement with other load generators", AGREEMENT),
    "agreement-h200": ("Agreement on a GPU", AGREEMENT_H200),
    "replay": ("Replay", "`make bench` replays a long trace, decoding included."),
}


def pages() -> dict[str, str]:
    """Return the page by its path."""
    found = sorted(
        (path for path in FOLDER.glob("*.json") if path.stem not in ELSEWHERE),
        key=lambda path: (list(KNOWN).index(path.stem) if path.stem in KNOWN else 99, path.stem),
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
        elif stem == "peers" and "fault" in rows[0]:
            found.append(peers_table(rows))
        elif stem == "bench" and "median" in rows[0]:
            found.append(bench_table(rows))
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
    grouped: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["group"], row["fault"]), {})[row["where"]] = row
    head = ["group", "fault", "expected", *(column for place in places for column in (place, "median s", "p95 s"))]
    lines = []
    for (group, fault), played in grouped.items():
        any_of_them = next(iter(played.values()))
        line = [prose(group), prose(fault), ", ".join(map(code, any_of_them["expected"]))]
        for place in places:
            line += fault_cells(played.get(place))
        lines.append(line)
    right = sum(row["right"] for row in rows)
    return f"{right} of {right + sum(row['wrong'] for row in rows)} as expected.\n\n{table(head, lines)}"


def fault_cells(row: dict[str, Any] | None) -> list[str]:
    """Return how one fault went in one place."""
    if row is None:
        return ["", "", ""]
    seconds = (row.get("median_s"), row.get("p95_s"))
    return [
        f"{row['right']} of {row['right'] + row['wrong']}",
        *("" if one is None else f"{one:.3f}" for one in seconds),
    ]


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


def bench_table(rows: list[dict[str, Any]]) -> str:
    """Return one row a measurement, with its target and whether it is reached."""
    head = ["what", "median", "p95", "worst", "n", "target", "reached", "load", "note"]
    lines = []
    for row in rows:
        unit = prose(str(row["unit"]))
        told = {name: prose(cell(row.get(name))) for name in head}
        told |= {name: f"{told[name]} {unit}" for name in ("median", "target") if row.get(name) is not None}
        told["reached"] = "**no**" if row.get("reached") == "NO" else told["reached"]
        lines.append([told[name] for name in head])
    return table(head, lines)


def cell(value: Any) -> str:
    """Return a value in words."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", " ")  # noqa: PLR2004 - no decimals from here on
    if isinstance(value, list):
        return ", ".join(cell(one) for one in value)
    return json.dumps(value) if isinstance(value, dict) else str(value)
