"""States from SGLang: `/generate` with `return_hidden_states`, as JSON floats.

SGLang 0.5.23, with --enable-return-aux-hidden-states: ids are layers whose output is meant, so boundary less one; the states
stand side by side. What comes after the last layer is not among them (a hook takes a layer's output as the next one's input,
`LogitsProcessor._check_aux_hidden_states`), so the last layer is computed here. Tokens from the radix cache and chunks of a
prompt but the last bring no states: each question has a cache key of its own, and chunks are refused. 0.5.17 gives the state
after the final norm alone.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import Any

import msgspec
import torch

from vigil.bench.client import Client
from vigil.bench.target import Target as Server
from vigil.errors import MeasureError, UsageError
from vigil_draft.states.part import Part
from vigil_draft.states.served.asking import Given, Shape, asked, must_be_numbers, must_be_whole

_OK = 200
A_NUMBER_BYTES = 24
"""Of JSON, at most; measured: 8.3 for bf16 states."""


class _Meta(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    hidden_states: list[msgspec.Raw] | None = None


class _Generated(msgspec.Struct, frozen=True):
    meta_info: _Meta
    output_ids: list[int] = []


class SGLang:
    """Asks SGLang. `last_layer`: computes the state before the final norm from the one before the last layer."""

    def __init__(self, shape: Shape, last_layer: Part) -> None:
        self.shape, self.last_layer = shape, last_layer
        self.given = tuple(sorted({*shape.boundaries, shape.layers - 1} - {shape.layers}))
        if self.given[0] < 1:
            raise UsageError("SGLang gives no state before the first layer: boundaries begin at 1")
        self.flags = " ".join(self.arguments())
        self._key, self._count = uuid.uuid4().hex, itertools.count()

    def arguments(self) -> list[str]:
        """Return the flags of a server that gives states."""
        layers = [str(each - 1) for each in self.given]
        return [
            "--enable-return-aux-hidden-states", "--speculative-algorithm", "EAGLE3", "--return-aux-hidden-state-layer-ids",
            *layers, "--chunked-prefill-size", "-1", "--disable-radix-cache",
        ]  # fmt: skip

    async def look(self, client: Client, server: Server, longest: int) -> str | None:
        """Refuse other layers, and prompts that come in chunks; return the version."""
        told = await _settings(client)
        if told is None:
            raise UsageError(
                f"{server.url} does not tell its settings (/server_info): it cannot be known what it would give"
            )
        layers = told.get("return_aux_hidden_state_layer_ids")
        if told.get("enable_return_aux_hidden_states") is not True or layers != [each - 1 for each in self.given]:
            since = "" if "enable_return_aux_hidden_states" in told else " of a newer release (0.5.23 has these flags)"
            raise UsageError(f"{server.url} does not give these states: start it{since} with {self.flags}")
        chunk = told.get("chunked_prefill_size")
        if isinstance(chunk, int) and 0 < chunk < longest:
            raise UsageError(
                f"{server.url} reads prompts in chunks of {chunk}, and gives the states of the last one alone: start it with"
                f" --chunked-prefill-size -1, or give --length {chunk} or less"
            )
        version = told.get("version")
        return version if isinstance(version, str) else None

    async def of(self, client: Client, server: Server, ids: list[int]) -> Given:
        """Ask for a document's states, and compute the last one."""
        body = {
            "input_ids": ids,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_hidden_states": True,
            "extra_key": f"{self._key}-{next(self._count)}",
        }
        told = await asked(client, server, "/generate", body, _Generated)
        must_be_whole(server, len(ids), told.meta_info.prompt_tokens)
        if not told.meta_info.hidden_states or not told.output_ids:
            raise UsageError(f"{server.url} gives no states: start it with {self.flags}")
        return await asyncio.to_thread(self._read, server, told, len(ids))

    def _read(self, server: Server, told: _Generated, tokens: int) -> Given:
        assert told.meta_info.hidden_states is not None  # noqa: S101 - it was looked at
        try:
            rows = msgspec.json.decode(told.meta_info.hidden_states[0], type=list[msgspec.Raw])
            found = [torch.tensor(msgspec.json.decode(one, type=list[float]), dtype=torch.bfloat16) for one in rows]
        except msgspec.DecodeError:
            raise MeasureError(f"{server.url} gave states that are no numbers") from None
        if len(found) != tokens:
            raise UsageError(
                f"{server.url} gave the states of {len(found)} of {tokens} tokens ({told.meta_info.cached_tokens} came from its"
                " cache): start it with --disable-radix-cache --chunked-prefill-size -1"
            )
        if {len(one) for one in found} != {len(self.given) * self.shape.width}:
            raise UsageError(
                f"{server.url} gave {len(found[0])} numbers a token, not {len(self.given)} states of {self.shape.width}:"
                f" start it with {self.flags}"
            )
        states = torch.stack(found).unflatten(1, (len(self.given), self.shape.width))
        must_be_numbers(server, states)
        last = self.last_layer.of_states(states[:, self.given.index(self.shape.layers - 1)])
        return Given(self.shape.picked(states, self.given, last), told.output_ids[0])


async def _settings(client: Client) -> dict[str, Any] | None:
    """Return what the server says of its settings, of which nothing is kept: its API key is among them."""
    for path in ("/server_info", "/get_server_info"):
        status, body = await client.get(path)
        if status == _OK:
            try:
                told = msgspec.json.decode(body)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(told, dict):
                return told
    return None
