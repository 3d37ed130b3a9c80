"""`make bench`: measure speed and cost, print one table with the targets beside the figures, keep it as JSON.

    python bench/bench.py [--only deaths|ready|watching|replay|peers]... [--times 20] [--window 60] [--budget 15]

Nothing else should run meanwhile: the load of the machine is kept with each figure. A run of some parts replaces only their
rows in docs/results/. A missed target is said in the table; the exit code is 0 all the same, as on a busy machine it says little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import bench_deaths  # noqa: E402 - needs the path above
import bench_peers  # noqa: E402
import bench_ready  # noqa: E402
import bench_watching  # noqa: E402
import replay_speed  # noqa: E402
from bench_figures import Figure, lay_out, load, machine  # noqa: E402
from bench_servers import own_ssh  # noqa: E402
from sshd import find_sshd  # noqa: E402

RESULTS = HERE.parent / "docs" / "results"
REPLAYED_FACTS = 100_000
Part = Callable[[Path, argparse.Namespace], Iterator[Figure]]


def deaths(folder: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure deaths here and over ssh."""
    if find_sshd() is None:
        print("no sshd here: bash tests/install-system.sh", file=sys.stderr)
        yield from bench_deaths.measure(folder, None, options.times)
        return
    with own_ssh(folder) as host:
        yield from bench_deaths.measure(folder, host, options.times)


def ready(folder: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure starts."""
    yield from bench_ready.measure(folder, options.times)


def watching(folder: Path, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure what watching costs."""
    yield from bench_watching.measure(folder, options.window)


def replay(_folder: Path, _options: argparse.Namespace) -> Iterator[Figure]:
    """Measure replay; the rows of replay_speed.py say more and are kept in replay.json."""
    kept = replay_speed.keep(REPLAYED_FACTS)
    for row in kept["rows"]:
        rates = tuple(float(rate) for rate in row["rates_per_s"])
        what = f"replay of {row['facts']} facts in the words of {row['engine']}, decoding included"
        yield Figure(
            what,
            "facts/s",
            rates,
            replay_speed.WANTED_PER_S,
            at_least=True,
            note=f"by the median; {row['facts_per_cpu_s']} a second of processor time",
        )


PARTS: dict[str, Part] = {"watching": watching, "deaths": deaths, "ready": ready, "replay": replay}


def main() -> None:
    """Measure the parts asked for, print, keep."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # started with `&` we would hand down that it is ignored
    options = read_options()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="vigil-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")
        for name, part in PARTS.items():
            if name not in options.only:
                continue
            began_s, before = time.monotonic(), load()
            for figure in part(Path(folder), options):
                rows.append({"part": name, **figure.row(), "load": before, "measured": time.strftime("%H:%M")})
                keep(rows)  # a run that is ended early leaves what it has
                said = "{what}: {median} {unit}, p95 {p95}".format(**rows[-1])
                print(f"{name}: {said}", file=sys.stderr, flush=True)
            print(f"{name} took {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    print(lay_out(rows))
    if "peers" in options.only:
        print(f"\n{bench_peers.measure(RESULTS / 'peers.json', options.budget)}")


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure speed and cost.")
    names = [*PARTS, "peers"]
    parser.add_argument("--only", action="append", choices=names, help="these parts; all of them where none is named")
    parser.add_argument("--times", type=int, default=20, help="how often each event is played")
    parser.add_argument("--window", type=float, default=60.0, help="seconds for which the watching is watched")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds that each peer may take")
    options = parser.parse_args()
    options.only = options.only or names
    return options


def keep(rows: list[dict[str, Any]]) -> None:
    """Keep the rows with the machine and the date; rows that were not measured now stay."""
    path = RESULTS / "bench.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    measured = {row["what"] for row in rows}
    left = [row for row in before.get("rows", []) if row["what"] not in measured]
    order = list(PARTS)
    kept = {
        "schema": 1,
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "machine": machine(),
        "rows": sorted([*left, *rows], key=lambda row: order.index(row["part"])),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
