"""Run inside vLLM's processes: its own connector of hidden states, and the same on a CPU, where that one ends in an error.

This file's folder stands on the server's PYTHONPATH. On an accelerator nothing differs from vLLM's own connector.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from safetensors.torch import save_file
from vllm.distributed.kv_transfer.kv_connector.v1.example_hidden_states_connector import (  # type: ignore[import-not-found]
    ExampleHiddenStatesConnector,
    extract_from_kv_cache,
)


class _Copied:
    """What vLLM looks at to know that the cache's blocks may be used again: on a CPU the copy is done when it is made."""

    def query(self) -> bool:
        """Tell that it is done."""
        return True


class VigilStatesConnector(ExampleHiddenStatesConnector):
    """Writes a request's states when it has ended, as vLLM's own does."""

    def _submit_async_write(self, pending: Any) -> None:
        """Write at once on a CPU: vLLM 0.32 copies through pinned memory, whatever the device."""
        cache = self._kv_cache
        if cache is None or cache.device.type != "cpu":
            super()._submit_async_write(pending)
            return
        within = torch.arange(self._block_size)
        slots = (torch.tensor(pending.block_ids)[:, None] * self._block_size + within).flatten()
        states = extract_from_kv_cache(cache, slots, len(pending.token_ids)).contiguous()
        self._req_copy_events[pending.req_id] = _Copied()  # without one, `get_finished` never gives the blocks back
        lock = self._lock_fds.pop(pending.req_id, None)
        try:
            save_file({"hidden_states": states, "token_ids": pending.token_ids}, pending.filename)
        finally:
            if lock is not None:
                os.close(lock)  # lets the reader in
