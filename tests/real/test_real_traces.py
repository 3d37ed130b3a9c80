"""The traces that real engines left replay to the verdicts that were given then.

`real-*`: of the tests beside this one (`VIGIL_KEEP_TRACES=1` records them anew); `gpu-*`: of `tests/gpu/cases.sh`.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from real_runs import TRACES

from vigil.supervise.replay import replay
from vigil.verdict import SERVING, Verdict

MOST_BYTES = 200_000


def kept(family: str) -> dict[Path, dict[str, Any]]:
    """Return the traces of a family that have an entry in its list: the verdicts that must come again."""
    known: dict[str, dict[str, Any]] = json.loads((TRACES / f"{family}.json").read_text())
    return {TRACES / f"{family}-{name}.jsonl": wanted for name, wanted in sorted(known.items())}


KEPT = kept("real") | kept("gpu")


def told(trace: Path) -> list[Verdict]:
    """Return the verdicts that `vigil up --follow` tells: each change while it serves, and the last one."""
    verdicts = list(replay(trace))
    return [*(one for one in verdicts[:-2] if one.word in SERVING), verdicts[-1]]


@pytest.mark.parametrize("trace", KEPT, ids=[trace.stem for trace in KEPT])
def test_real_trace_replays_to_the_same_verdicts(trace: Path) -> None:
    verdicts = told(trace)
    cause = verdicts[-1].cause

    assert [str(one.word) for one in verdicts] == KEPT[trace]["words"]
    assert (cause.code if cause else None) == KEPT[trace]["cause"]


def test_real_traces_are_small_and_all_known() -> None:
    found = {path for family in ("real", "gpu") for path in TRACES.glob(f"{family}-*.jsonl")}

    assert found == set(KEPT)
    assert {path.name: path.stat().st_size for path in found if path.stat().st_size > MOST_BYTES} == {}
