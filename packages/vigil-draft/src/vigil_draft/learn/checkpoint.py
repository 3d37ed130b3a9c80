"""Checkpoints of a training: one safetensors file, written beside and renamed, from which it goes on bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from vigil.errors import UsageError
from vigil_draft.data.prepared import write_whole

if TYPE_CHECKING:
    from vigil_draft.learn.draft import Draft

FILE = "training/checkpoint.safetensors"
"""In a folder of its own: vLLM 0.32 and SGLang load every *.safetensors beside a draft's config (vLLM refuses this one)."""


class Reached(NamedTuple):
    """How far a training is: steps done, and seconds spent on them."""

    step: int
    seconds: float


def write(
    folder: Path, draft: Draft, optimizer: torch.optim.Optimizer, facts: dict[str, Any], reached: Reached
) -> None:
    """Write weights, the optimizer's two moments, how far it is, and the facts of the plan."""
    tensors: dict[str, torch.Tensor] = {}
    for name, weight in draft.named_parameters():
        tensors[f"weight/{name}"] = weight.detach().cpu()
        for moment in ("exp_avg", "exp_avg_sq"):
            tensors[f"{moment}/{name}"] = optimizer.state[weight][moment].cpu()
    tensors["vocabulary"] = draft.vocabulary.cpu()
    about = {"step": str(reached.step), "seconds": repr(reached.seconds), "facts": json.dumps(facts)}
    (folder / FILE).parent.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FILE, save(tensors, metadata=about))


def read(folder: Path, draft: Draft, optimizer: torch.optim.Optimizer, facts: dict[str, Any]) -> Reached:
    """Put the last checkpoint's state in place; return how far it was, (0, 0) where there is none."""
    path = folder / FILE
    if not path.exists():
        return Reached(0, 0.0)
    try:
        with safe_open(path, "pt") as file:
            about = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except (SafetensorError, OSError) as error:
        raise UsageError(f"{path}: damaged: {error}") from None
    was = json.loads(about["facts"])
    differ = sorted(name for name in {*was, *facts} if was.get(name) != facts.get(name))
    if differ:
        raise UsageError(
            f"{path}: is of another training ({', '.join(differ)} differ): give another --out, or remove it"
        )
    if not torch.equal(tensors["vocabulary"], draft.vocabulary.cpu()):
        raise UsageError(f"{path}: its words are not those of this data")
    step = int(about["step"])
    with torch.no_grad():
        for name, weight in draft.named_parameters():
            weight.copy_(tensors[f"weight/{name}"])
            moments = {moment: tensors[f"{moment}/{name}"].to(weight.device) for moment in ("exp_avg", "exp_avg_sq")}
            at = torch.tensor(float(step), device=weight.device if optimizer.defaults["fused"] else None)
            optimizer.state[weight] = {"step": at, **moments}
    return Reached(step, float(about["seconds"]))
