"""The figures of the draft that is kept in the repository, from the files that its making left beside it."""

import json
from pathlib import Path
from typing import Any

from generators.comparisons import section
from generators.markdown import prose, table
from vigil_draft.learn.curves import svg_of
from vigil_draft.learn.record import read

MADE = Path(__file__).parents[2] / "packages" / "vigil-draft-smollm2" / "src" / "vigil_draft_smollm2" / "made"
WIDENED = Path(__file__).parents[1] / "results" / "widened.json"
EVERY = 6
"""Of the lines of the record, written each ten seconds, one in so many is shown."""


def parts() -> dict[str, dict[str, str]]:
    """Return the made parts of the pages."""
    return {"drafts.md": {"estimate": estimate(), "course": course(), "widened": widened()}}


def picture() -> str:
    """Return the picture of its training, as `vigil draft report` draws it."""
    return svg_of([read(MADE / "record.jsonl")], "a draft of SmolLM2-135M-Instruct, seven minutes on one H200")


def estimate() -> str:
    """Return the estimate on held-out documents for each k, and what a server did."""
    found, live = _read("eval.json"), _read("live.json")
    rows = []
    for k, both in found["acceptance_length"].items():
        walk, mean = both["served"], both["all_positions"]
        seen = f"{live['acceptance_length']:.2f} ({live['low']:.2f} to {live['high']:.2f})" if k == "3" else ""
        rows.append([
            k, f"{walk['with_bonus']:.2f} ({walk['low']:.2f} to {walk['high']:.2f})", f"{walk['without_bonus']:.2f}",
            f"{mean['with_bonus']:.2f}", f"{found['joint'][int(k) - 1]:.3f}", seen,
        ])  # fmt: skip
    head = [
        "k", "as engines report it", "without the bonus token", "over all positions", "k in a row right",
        "live in SGLang",
    ]  # fmt: skip
    return table(head, rows)


def course() -> str:
    """Return how the training went, a minute a line."""
    lines = [json.loads(line) for line in (MADE / "record.jsonl").read_text("utf-8").splitlines()]
    rows = [
        [
            f"{one['seconds']:.0f} s", str(one["step"]), f"{one['tokens_per_s']:,}", f"{one['loss']:.2f}",
            prose(" ".join(f"{each:.3f}" for each in one["accuracy"])), f"{one['acceptance_length_k3']:.2f}",
            f"{one['peak_gib']:.1f}",
        ]
        for one in [lines[0], *lines[EVERY - 1 :: EVERY], *([] if len(lines) % EVERY == 0 else [lines[-1]])]
    ]  # fmt: skip
    head = ["after", "steps", "tokens/s", "loss", "accuracy of each step", "acceptance length, k 3", "peak GiB"]
    return table(head, rows)


def widened() -> str:
    """Return how the widened pair answered beside the small one, and what speculation gave on it."""
    kept = json.loads(WIDENED.read_text("utf-8"))
    named = {"eagle3": "the wide target with its draft", "small": "the small target"}
    rows = [
        [named[name], str(one["answers"]), str(one["same"]), f"{one['near_ties']} (at most {one['widest_near_tie_nats']} nats)",
         str(len(one["elsewhere"])), f"{one['tokens_compared']:,}"]
        for name, one in kept["rows"].items()
    ]  # fmt: skip
    head = [
        "held against the wide target",
        "answers",
        "the same",
        "parted at a near-tie",
        "elsewhere",
        "tokens compared",
    ]
    return f"{table(head, rows)}\n\n{section('wide', 'SGLang on an H200: the widened pair, off and EAGLE-3')}"


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MADE / name).read_text("utf-8"))
    return found
