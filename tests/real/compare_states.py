"""Hold extracted states to those of transformers in process: the right ones, and what is one layer, norm or token beside them.

.engines/draft/bin/python tests/real/compare_states.py TARGET STATES: a line of JSON. It takes nothing from vigil: hooks of its
own see what goes into each layer and into the final norm, in fp32.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def seen_by(model: Any) -> tuple[Any, dict[int, torch.Tensor]]:
    """Return what runs tokens, and where the state at each boundary then stands: L is before the final norm, L + 1 after it."""
    kept: dict[int, torch.Tensor] = {}
    layers = model.model.layers
    for number, place in enumerate([*layers, model.model.norm]):

        def keep(_module: Any, given: tuple[Any, ...], named: dict[str, Any], at: int = number) -> None:
            kept[at] = (given[0] if given else named["hidden_states"])[0]

        place.register_forward_pre_hook(keep, with_kwargs=True)

    def run(ids: torch.Tensor) -> None:
        with torch.no_grad():
            kept[len(layers) + 1] = model.model(ids.unsqueeze(0), use_cache=False).last_hidden_state[0]

    return run, kept


def figures(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, float]:
    """Return the worst cosine and the relative errors over all tokens."""
    ours, theirs = (torch.cat(each) for each in zip(*pairs, strict=True))
    errors = (ours - theirs).norm(dim=-1) / theirs.norm(dim=-1)
    cosine = torch.nn.functional.cosine_similarity(ours, theirs, dim=-1)
    return {"cosine": float(cosine.min()), "error": float(errors.max()), "median": float(errors.median())}


def main() -> None:
    """Print, for each state, how far it is from the right one and from its neighbours."""
    target, states = sys.argv[1], Path(sys.argv[2])
    boundaries = json.loads((states / "manifest.json").read_text())["boundaries"]
    model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    run, kept = seen_by(model)
    places = [*boundaries, len(model.model.layers)]
    beside = ("right", "layer before", "layer after, or normed", "token before")
    found: dict[str, dict[str, Any]] = {str(place): {name: [] for name in beside} for place in places}
    tokens = 0
    for path in sorted(states.glob("hs_*.safetensors")):
        file = load_file(path)
        run(file["token_ids"])
        tokens += len(file["token_ids"])
        for at, place in enumerate(places):
            ours = file["hidden_states"][:, at].float()
            wanted = (kept[place], kept[place - 1], kept[place + 1], kept[place].roll(1, 0))
            for name, theirs in zip(beside, wanted, strict=True):
                found[str(place)][name].append((ours, theirs))
    told = {place: {name: figures(pairs) for name, pairs in each.items()} for place, each in found.items()}
    print(json.dumps({"tokens": tokens, "states": told}))


if __name__ == "__main__":
    main()
