"""The traces that real engines left replay to the verdicts that were given then (`VIGIL_KEEP_TRACES=1` records them anew)."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from real_runs import TRACES

from vigil.supervise.replay import replay
from vigil.verdict import SERVING, Verdict

MOST_BYTES = 200_000


KNOWN: dict[str, dict[str, Any]] = json.loads((TRACES / "real.json").read_text())
KEPT = {TRACES / f"real-{name}.jsonl": wanted for name, wanted in sorted(KNOWN.items())}


def told(trace: Path) -> list[Verdict]:
    """Return the verdicts that `vigil up --follow` tells: each change while it serves, and the last one."""
    verdicts = list(replay(trace))
    serving = [one for one in verdicts if one.word in SERVING]
    changes = [
        one for before, one in itertools.pairwise([None, *serving]) if before is None or before.word is not one.word
    ]
    return changes if verdicts[-1].word in SERVING else [*changes, verdicts[-1]]


@pytest.mark.parametrize("trace", KEPT, ids=[trace.stem for trace in KEPT])
def test_real_trace_replays_to_the_same_verdicts(trace: Path) -> None:
    verdicts = told(trace)
    cause = verdicts[-1].cause

    assert [str(one.word) for one in verdicts] == KEPT[trace]["words"]
    assert (cause.code if cause else None) == KEPT[trace]["cause"]


def test_real_traces_are_small_and_all_known() -> None:
    found = set(TRACES.glob("real-*.jsonl"))

    assert found == set(KEPT)
    assert {path.name: path.stat().st_size for path in found if path.stat().st_size > MOST_BYTES} == {}
