"""What `vigil draft eval` says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from vigil_draft.data import prepared
from vigil_draft.evaluate.acceptance import lengths
from vigil_draft.evaluate.guesses import guess
from vigil_draft.formats.identity import difference, identity_of
from vigil_draft.formats.provenance import provenance_of
from vigil_draft.learn import folder
from vigil_draft.states.batch import Corpus
from vigil_draft.states.target import Target, folder_of

TOKENS_AT_ONCE = {"cuda": 32768, "cpu": 4096}
UNLIKE_GREEDY = 0.95
"""Below this part of the answers being the target's own greedy tokens, they were not made by it at temperature 0."""


def evaluate(draft_folder: Path, target_path: str, data: Path, *, k: int, length: int) -> dict[str, Any]:
    """Return accuracy and acceptance length of a draft on prepared data."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    boundaries = folder.boundaries_of(draft_folder)
    other = difference((provenance_of(draft_folder) or {}).get("target_identity"), identity_of(folder_of(target_path)))
    if other:
        print(
            f"{draft_folder}: was trained for another target than {target_path}: {other} differ",
            file=sys.stderr,
            flush=True,
        )
    target = Target(target_path, device, torch.bfloat16 if device.type == "cuda" else torch.float32, boundaries)
    draft, config = folder.read(draft_folder, target)
    corpus = Corpus(prepared.read(data), length, seed=0)
    found = guess(draft, target, corpus, k, max(1, TOKENS_AT_ONCE[device.type] // length))
    places = max(1, found.places)
    return {
        "schema": 1,
        "draft": str(draft_folder),
        "target": target_path,
        "another_target": bool(other),
        "data": str(data),
        "documents": len({each.document for each in found.answers}),
        "positions": found.places,
        "draft_vocabulary": config.get("draft_vocab_size") or config["vocab_size"],
        "coverage": round(found.covered / places, 4),
        "answers_are_greedy": round(found.as_said / places, 4),
        "accuracy": [round(a / max(1, b), 4) for a, b in zip(found.right, found.possible, strict=True)],
        "joint": [round(each / places, 4) for each in found.joint],
        "acceptance_length": {str(each): lengths(found.answers, each) for each in range(1, k + 1)},
    }


def told(result: dict[str, Any]) -> str:
    """Return it as text."""
    lines = [
        (
            f"{result['documents']} documents, {result['positions']} positions; the draft's {result['draft_vocabulary']} "
            f"words cover {result['coverage']:.1%} of what the target says"
        ),
        "accuracy of each step          " + " ".join(f"{each:.3f}" for each in result["accuracy"]),
        "joint: all steps up to it      " + " ".join(f"{each:.3f}" for each in result["joint"]),
        "",
        " k  acceptance length as engines report it     without the      averaged over all positions",
        "    (served greedily, with the bonus token)    bonus token      with the bonus token, without",
    ]
    for k, both in result["acceptance_length"].items():
        walk, mean = both["served"], both["all_positions"]
        lines.append(
            f"{k:>2}  {walk['with_bonus']:.3f}  ({walk['low']:.3f} to {walk['high']:.3f})".ljust(47)
            + f"{walk['without_bonus']:.3f}            {mean['with_bonus']:.3f}  "
            + f"({mean['low']:.3f} to {mean['high']:.3f}), {mean['without_bonus']:.3f}"
        )
    if result["answers_are_greedy"] < UNLIKE_GREEDY:
        share = f"{result['answers_are_greedy']:.1%}"
        lines.append(
            f"only {share} of the answers' tokens are the target's own greedy ones: a server will go other ways than this data"
        )
    return "\n".join(lines)
