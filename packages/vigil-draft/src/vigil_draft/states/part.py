"""A part of a target: a few of its layers in process, without the rest. Small where the target is too large to load.

It checks what a server says, and computes what no server gives.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from vigil.errors import VigilError
from vigil_draft.errors import DraftError, NotADraftError
from vigil_draft.formats.folders import Folder, read_folder


class NoPartError(VigilError):
    """This target cannot be run in part: it is quantised, or no plain decoder."""


class Part:
    """Layers `first` to `upto` of a target, in bf16, on the CPU. Invariant: nothing of it is on the meta device."""

    def __init__(self, path: Path, first: int, upto: int, *, words: bool = False) -> None:
        """Load the layers, the final norm, and with `words` the embedding; raise `NoPartError` where that cannot be done."""
        self.folder = _folder(path)
        self.model = _empty(path, first, upto)
        wanted = {f"layers.{number}.": f"layers.{number - first}." for number in range(first, upto)}
        wanted |= {"norm.": "norm."} | ({"embed_tokens.": "embed_tokens."} if words else {})
        loaded = {}
        for name in self.folder.tensors:
            short = name.removeprefix("model.")
            for begin, instead in wanted.items():
                if short.startswith(begin):
                    loaded[instead + short.removeprefix(begin)] = tensor(self.folder, name).to(torch.bfloat16)
        self.model.load_state_dict(loaded, strict=False, assign=True)
        lacking = [name for name, one in self.model.named_parameters() if one.is_meta]
        lacking = [name for name in lacking if words or not name.startswith("embed_tokens.")]
        if lacking:
            raise NoPartError(f"{path}: has no plain weights for {lacking[0]}: it cannot be run in part")
        self.norm = self.model.norm
        self.model.norm = (
            torch.nn.Identity()
        )  # what comes out is the state before it; no hook, so threads share nothing

    @torch.no_grad()
    def of_tokens(self, token_ids: torch.Tensor) -> list[torch.Tensor]:
        """Return the states [T, H] before each layer and after the last; the part must begin at the first layer."""
        found = self.model(input_ids=token_ids.unsqueeze(0), use_cache=False, output_hidden_states=True).hidden_states
        return [each[0] for each in found]

    @torch.no_grad()
    def of_states(self, states: torch.Tensor) -> torch.Tensor:
        """Return the state [T, H] that the layers make of the one before them."""
        given = states.to(torch.bfloat16).unsqueeze(0)
        found: torch.Tensor = self.model(inputs_embeds=given, use_cache=False).last_hidden_state
        return found[0]

    @torch.no_grad()
    def normed(self, last: torch.Tensor) -> torch.Tensor:
        """Return a state after the final norm."""
        found: torch.Tensor = self.norm(last.to(torch.bfloat16))
        return found


def head_of(folder: Folder) -> torch.Tensor:
    """Return the target's head [V, H]: its own, or the embedding where the two are tied."""
    names = ("lm_head.weight", "model.lm_head.weight", "model.embed_tokens.weight", "embed_tokens.weight")
    name = next((one for one in names if one in folder.tensors), None)
    if name is None:
        raise NoPartError(f"{folder.path}: has no head that is known")
    return tensor(folder, name).to(torch.bfloat16)


def tensor(folder: Folder, name: str) -> torch.Tensor:
    """Return one tensor of a folder."""
    path = folder.tensors[name].path
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            found: torch.Tensor = file.get_tensor(name)
    except (OSError, SafetensorError) as error:
        raise NoPartError(f"{path}: {str(error).splitlines()[0]}") from None
    if not found.is_floating_point() or found.element_size() < 2:  # noqa: PLR2004 - 8 bits are a quantised weight
        raise NoPartError(f"{folder.path}: its weights are quantised: it cannot be run in part")
    return found


def _folder(path: Path) -> Folder:
    try:
        folder = read_folder(path)
    except (DraftError, NotADraftError) as error:
        raise NoPartError(str(error)) from None
    if folder.config.get("quantization_config") is not None:
        raise NoPartError(f"{path}: its weights are quantised: it cannot be run in part")
    return folder


def _empty(path: Path, first: int, upto: int) -> Any:
    """Return the model with these layers alone and no weights."""
    from transformers import AutoConfig, AutoModel  # noqa: PLC0415 - seconds

    config = copy.deepcopy(AutoConfig.from_pretrained(str(path)).get_text_config())
    config.num_hidden_layers = upto - first
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[first:upto]
    try:
        with torch.device("meta"):
            model = AutoModel.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
        model.rotary_emb = type(model.rotary_emb)(config=config)  # its frequencies are computed, not loaded
        whole = all(hasattr(model, name) for name in ("layers", "norm", "embed_tokens"))
    except (AttributeError, TypeError, ValueError) as error:
        raise NoPartError(f"{path}: is no plain decoder ({error}): it cannot be run in part") from None
    if not whole or any(one.is_meta for one in model.buffers()):
        raise NoPartError(f"{path}: is no plain decoder: it cannot be run in part")
    return model.eval().requires_grad_(requires_grad=False)
