"""How fast `vigil diagnose` reads: a gigabyte, a log full of errors, one of errors alone, and one that is being written.

    python bench/diagnose_speed.py [--mib 1024]

Each log is made here (the head of a real one, then lines of a server at work) and read by a process of its own, whose processor
seconds and peak memory count. `drain3-improved` reads a part of the same log, where it is installed (.peers/drain3); its figure
is scaled to the same size. The figures are kept in docs/results/scanning.json.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from bench_figures import load, machine  # noqa: E402 - needs the path above

HEAD = ROOT / "tests" / "data" / "logs" / "sglang-h200" / "e1_base.log"
RESULTS = ROOT / "docs" / "results" / "scanning.json"
DRAIN = ROOT / ".peers" / "drain3" / "bin" / "python"
MIB = 1 << 20
LIVE_MBS = 50
LIVE_S = 8
DRAIN_MIB = 4
_DRAIN = """
import sys, time
from drain3 import TemplateMiner
lines = open(sys.argv[1], errors="replace").read().split("\\n")
miner = TemplateMiner()
begun = time.process_time()
for line in lines:
    miner.add_log_message(line)
print(time.process_time() - begun)
"""


def lines(every: int) -> Iterator[bytes]:
    """Yield the lines of a server at work: one in `every` is worth a look, one in fifty is a bar."""
    number = 0
    while True:
        number += 1
        clock = b"[2026-11-30 08:%02d:%02d TP%d]" % (number // 60 % 60, number % 60, number % 4)
        if number % every == 0:
            yield b"%s ERROR request %d failed: RuntimeError: number %d went wrong\n" % (clock, number, number)
        elif number % 50 == 0:
            yield b"\r".join(b"Loading %3d%% | %d/64" % (part, part) for part in range(0, 64, 8)) + b"\n"
        else:
            yield (
                b"%s Decode batch, #running-req: %d, #token: %d, token usage: 0.12, cuda graph: True, "
                b"gen throughput (token/s): %d.02, #queue-req: 0\n" % (clock, number % 64, number, number % 1000)
            )


def errors() -> Iterator[bytes]:
    """Yield lines that are all worth a look: a server that fails each request, and says so at length and briefly."""
    for number in itertools.count(1):
        yield b"[2026-11-30 08:%02d:%02d TP%d] " % (number // 60 % 60, number % 60, number % 4)
        yield b"ERROR request %d failed: RuntimeError: number %d went wrong\n" % (number, number)
        if number % 4 == 0:
            yield b"ERROR %d\n" % number
        if number % 16 == 0:
            yield b"Traceback (most recent call last):\n"
            yield b'  File "/opt/server/handlers_%d.py", line %d, in handle\n' % (number % 3, number)
            yield b"    return reply(request)\nValueError: request %d is none\n" % number


def write_errors(path: Path, size: int) -> None:
    """Write a log of `size` bytes in which every line is an error."""
    with path.open("wb") as file:
        written = 0
        for line in errors():
            written += file.write(line)
            if written >= size:
                return


def write_log(path: Path, size: int, every: int) -> None:
    """Write a log of `size` bytes."""
    with path.open("wb") as file:
        file.write(b"\n".join(HEAD.read_bytes().split(b"\n")[:200]) + b"\n")
        written = file.tell()
        for line in lines(every):
            written += file.write(line)
            if written >= size:
                return


def read(path: Path) -> tuple[float, float]:
    """Diagnose a file in a process of its own; return its processor seconds and peak memory in MiB."""
    asked = subprocess.Popen(
        [sys.executable, "-m", "vigil", "diagnose", "--json", str(path)], stdout=subprocess.DEVNULL
    )
    _, status, use = os.wait4(asked.pid, 0)
    asked.returncode = os.waitstatus_to_exitcode(status)
    if asked.returncode:
        raise SystemExit(f"vigil diagnose {path} ended with {asked.returncode}")

    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024


def follow(folder: Path) -> dict[str, Any]:
    """Have one process write at 50 MB/s into a pipe and vigil read it; return what the writer reached."""
    block = b"".join(line for line, _ in zip(lines(1000), range(8000), strict=False))
    read_end, write_end = os.pipe()
    reader = subprocess.Popen(
        [sys.executable, "-m", "vigil", "diagnose", "--json", f"/dev/fd/{read_end}"],
        pass_fds=[read_end], stdout=subprocess.DEVNULL, cwd=folder,
    )  # fmt: skip
    os.close(read_end)
    begun_s, written = time.monotonic(), 0
    with os.fdopen(write_end, "wb", buffering=0) as pipe:
        while (spent_s := time.monotonic() - begun_s) < LIVE_S:
            if written > LIVE_MBS * 1e6 * spent_s:
                time.sleep(0.001)
                continue
            view = memoryview(block)
            while view:
                view = view[pipe.write(view) :]
            written += len(block)
        took_s = time.monotonic() - begun_s
    reader.wait()
    return {
        "what": f"written at {LIVE_MBS} MB/s",
        "MB/s": round(written / took_s / 1e6, 1),
        "target": f"{LIVE_MBS} MB/s kept up with",
    }


def flood(folder: Path, mib: int) -> dict[str, Any]:
    """Read a log of errors alone; return its row."""
    log = folder / "errors.log"
    write_errors(log, mib * MIB)
    cpu_s, peak = read(log)
    log.unlink()
    return {
        "what": f"{mib} MiB, every line an error",
        "s": round(cpu_s, 2),
        "MB/s": round(mib * MIB / cpu_s / 1e6, 1),
        "peak MiB": round(peak),
        "load": load(),
    }


def drain(path: Path) -> float | None:
    """Return the processor seconds that drain3-improved takes for a part of the log, or None where it is not there."""
    if not DRAIN.exists():
        return None
    part = path.with_suffix(".part")
    with path.open("rb") as whole:
        part.write_bytes(whole.read(DRAIN_MIB * MIB))
    done = subprocess.run([DRAIN, "-c", _DRAIN, str(part)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as text, each column as wide as its widest cell."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    grid = [columns, *([str(row.get(name, "")) for name in columns] for row in rows)]
    widths = [max(len(line[place]) for line in grid) for place in range(len(columns))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in grid)


def main() -> int:
    """Make the logs, read them, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024, help="size of the large log")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="vigil-speed-") as name:
        folder = Path(name)
        for every, mib, target in ((1000, options.mib, "5 s, 100 MB"), (10, options.mib // 4, "20 MB/s")):
            log = folder / f"{every}.log"
            write_log(log, mib * MIB, every)
            cpu_s, peak = read(log)
            rate = round(mib * MIB / cpu_s / 1e6, 1)
            what = f"{mib} MiB, a line in {every} worth a look"
            rows.append(
                {
                    "what": what,
                    "s": round(cpu_s, 2),
                    "MB/s": rate,
                    "peak MiB": round(peak),
                    "target": target,
                    "load": load(),
                }
            )
            slow_s = drain(log)
            if slow_s is not None:
                rate = round(DRAIN_MIB * MIB / slow_s / 1e6, 1)
                rows.append(
                    {
                        "what": f"the same, drain3-improved 0.10.0 on {DRAIN_MIB} MiB",
                        "s": round(slow_s * mib / DRAIN_MIB, 1),
                        "MB/s": rate,
                    }
                )
            log.unlink()
        rows.append(flood(folder, options.mib // 16))
        rows.append(follow(folder))
    print(table(rows))
    date = time.strftime("%Y-%m-%d %H:%M:%S %z")
    RESULTS.write_text(json.dumps({"date": date, "machine": machine(), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
