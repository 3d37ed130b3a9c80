"""The target in process: hidden states at boundaries between its layers, and what it would say next.

Boundary k is the state after k layers (transformers' `hidden_states[k]`). `last` is the state before the final norm,
the convention of speculators; transformers 5 gives the state AFTER it as `hidden_states[L]` (its `capture_outputs`), so
hooks take what goes into the norm.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vigil.errors import UsageError
from vigil_draft.data.template import resolve
from vigil_draft.states import attention
from vigil_draft.states.trial import trial_batch

if TYPE_CHECKING:
    from vigil_draft.states.batch import Batch

VARLEN = "vigil_documents"
"""The name under which transformers finds our attention over documents."""
ROWS_AT_ONCE = 4096
"""Tokens whose logits over the whole vocabulary are held at once: 0.4 GB in bf16 for 49,152 words."""
MOST_OFF = 0.05
"""Of states from those by a mask: bf16 over 30 layers differs by 0.01, a wrong mask by 0.5."""


def default_boundaries(layers: int) -> tuple[int, int, int]:
    """Return the boundaries that every engine reads where the draft's config names none."""
    return (2, layers // 2, layers - 3)


class Target:
    """A causal language model of transformers, frozen, on one device."""

    def __init__(
        self, path: str, device: torch.device, dtype: torch.dtype, boundaries: tuple[int, ...] | None = None
    ) -> None:
        self.path = path
        self.device = device
        self.model = _load(path, dtype).to(device).eval().requires_grad_(requires_grad=False)
        self.decoder = self.model.get_decoder()
        layers = len(self.decoder.layers)
        self.boundaries = boundaries or default_boundaries(layers)
        if not all(0 <= each <= layers for each in self.boundaries) or min(self.boundaries) < 0:
            raise UsageError(f"boundaries {self.boundaries}: the target has {layers} layers")
        self.config: Any = self.model.config
        self.norm, self.head = self.decoder.norm, self.model.get_output_embeddings().weight.detach()
        self.embedding: torch.Tensor = self.model.get_input_embeddings().weight.detach()
        self._seen: dict[int, torch.Tensor] = {}
        self._batch: Batch | None = None
        self._hook(layers)
        self.kernel: Any = None
        if device.type == "cuda":
            self.take(attention.FlashKernel())

    def _hook(self, layers: int) -> None:
        places = [*self.decoder.layers, self.norm]
        for boundary in {*self.boundaries, layers}:

            def keep(_module: Any, given: tuple[Any, ...], named: dict[str, Any], at: int = boundary) -> None:
                self._seen[at] = given[0] if given else named["hidden_states"]

            places[boundary].register_forward_pre_hook(keep, with_kwargs=True)

    @torch.no_grad()
    def states(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states at the boundaries, side by side [T, A*H], and `last` [T, H]."""
        self._batch = batch
        if (
            self.kernel is not None
        ):  # a mask of four dimensions is passed on as it is, and our attention does not look at it
            shape, visible = (1, -1), torch.ones(1, 1, 1, 1, dtype=torch.bool, device=self.device)
        else:
            shape, visible = (-1, batch.length), attention.mask(batch)
        ids, positions = batch.token_ids.view(shape), batch.positions.view(shape)
        self.decoder(input_ids=ids, position_ids=positions, attention_mask=visible, use_cache=False)
        width = self.embedding.shape[1]
        seen = {at: state.reshape(-1, width) for at, state in self._seen.items()}
        self._seen.clear()
        return torch.cat([seen[at] for at in self.boundaries], dim=-1), seen[len(self.decoder.layers)]

    @torch.no_grad()
    def logits(self, last: torch.Tensor, head: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits over the vocabulary, or over the rows of a part of the head."""
        found: torch.Tensor = self.norm(last) @ (self.head if head is None else head).T
        return found

    @torch.no_grad()
    def greedy(self, last: torch.Tensor) -> torch.Tensor:
        """Return the token that the target would say after each place."""
        return torch.cat([self.logits(part).argmax(-1) for part in last.split(ROWS_AT_ONCE)])

    def take(self, kernel: Any) -> None:
        """Switch to a kernel's attention where it agrees with the mask's on a small batch; say so where it does not."""
        from transformers import AttentionInterface  # noqa: PLC0415 - seconds

        def over_documents(
            _module: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, _mask: Any, **_more: Any
        ) -> tuple[torch.Tensor, None]:
            flat = (x[0].transpose(0, 1).contiguous() for x in (q, k, v))
            return kernel.forward(*flat, self._batch)[0].unsqueeze(0), None

        batch = trial_batch(self.config.vocab_size).to(self.device)
        _, before = self.states(batch)
        try:
            AttentionInterface.register(VARLEN, over_documents)
            self.model.set_attn_implementation(VARLEN)
            self.kernel = kernel
            _, after = self.states(batch)
            off = float((after - before).float().norm() / before.float().norm())
            reason = f"off by {off:.3f}"
        except Exception as error:  # noqa: BLE001 - whatever this torch cannot do, the mask can
            off, reason = float("inf"), str(error).splitlines()[0]
        if not off < MOST_OFF:
            self.kernel = None
            self.model.set_attn_implementation("sdpa")
            print(
                f"the target's attention goes by a mask, which is slow: the flash kernel is not usable here ({reason})",
                file=sys.stderr,
            )


def _load(path: str, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - seconds

    try:
        return AutoModelForCausalLM.from_pretrained(path, dtype=dtype, use_safetensors=True, attn_implementation="sdpa")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be loaded as a target: {str(error).strip().splitlines()[0]}") from None


def shape_of(path: str) -> tuple[int, int]:
    """Return a target's layers and hidden size, from its config alone."""
    from transformers import AutoConfig  # noqa: PLC0415 - seconds

    try:
        config = AutoConfig.from_pretrained(path).get_text_config()
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be loaded as a target: {str(error).strip().splitlines()[0]}") from None
    return config.num_hidden_layers, config.hidden_size


def folder_of(target: str) -> Path | None:
    """Return the folder of a target, None where only transformers knows where it is."""
    try:
        return resolve(target)
    except UsageError:
        return None
