"""States from vLLM: its `extract_hidden_states` method, whose connector writes a safetensors file for each request.

vLLM 0.32: ids are boundaries, that after the last layer among them, before the final norm, in ascending order. States lie in
the KV cache, so those of tokens from the prefix cache and of earlier chunks are whole. The file is written after the answer;
until it is whole its `.lock` is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load

from vigil.bench.answered import shown
from vigil.bench.client import Client
from vigil.bench.provenance import server_facts
from vigil.bench.target import Target as Server
from vigil.errors import MeasureError, UsageError
from vigil_draft.states.served.asking import Given, Shape, asked, must_be_numbers, must_be_whole

CONNECTOR, MODULE = "VigilStatesConnector", "vigil_states"
INSIDE = Path(__file__).parents[1] / "inside_vllm"
WRITTEN_S, APPEARS_S, LOOK_S = 120.0, 5.0, 0.005
SLACK_BYTES = 1 << 20
_NAME = re.compile(r"[\w.-]{1,200}\.safetensors")


class _Choice(msgspec.Struct, frozen=True):
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    usage: _Usage | None = None
    kv_transfer_params: dict[str, Any] | None = None


class VLLM:
    """Asks vLLM, and takes over what it writes. `handed`: the connector's folder as this machine sees it."""

    def __init__(self, shape: Shape, handed: Path) -> None:
        self.shape, self.handed = shape, handed
        self.given = tuple(sorted({*shape.boundaries, shape.layers}))
        self.flags = " ".join(f"{one}" if one.startswith("--") else f"'{one}'" for one in self.arguments(own=False))

    def arguments(self, *, own: bool = True) -> list[str]:
        """Return the flags of a server that hands states over; `own`: through the connector that works on a CPU, too."""
        config = {"hf_config": {"eagle_aux_hidden_state_layer_ids": list(self.given)}}
        method = {"method": "extract_hidden_states", "num_speculative_tokens": 1, "draft_model_config": config}
        connector = {
            "kv_connector": CONNECTOR if own else "ExampleHiddenStatesConnector",
            **({"kv_connector_module_path": MODULE} if own else {}),
            "kv_role": "kv_producer",
            "kv_connector_extra_config": {"shared_storage_path": str(self.handed)},
        }
        return ["--speculative-config", json.dumps(method), "--kv-transfer-config", json.dumps(connector)]

    async def look(self, client: Client, server: Server, longest: int) -> str | None:
        """Return the version: vLLM tells no more of its settings, and keeps the states of every token."""
        del longest
        version = (await server_facts(client, server)).get("version")
        return version if isinstance(version, str) else None

    async def of(self, client: Client, server: Server, ids: list[int]) -> Given:
        """Ask for a document's states, and take the file over."""
        body = {"model": server.model, "prompt": ids, "max_tokens": 1, "temperature": 0.0, "return_token_ids": True}
        told = await asked(client, server, "/v1/completions", body, _Completion)
        must_be_whole(server, len(ids), told.usage.prompt_tokens if told.usage else None)
        choice = told.choices[0] if told.choices else _Choice()
        path = (told.kv_transfer_params or {}).get("hidden_states_path")
        if not isinstance(path, str) or not choice.token_ids:
            raise UsageError(f"{server.url} hands no states over: start it with {self.flags}")
        if choice.prompt_token_ids is not None and choice.prompt_token_ids != ids:
            raise UsageError(f"{server.url} read other tokens than it was asked for")
        states = await asyncio.to_thread(self._taken, server, path, ids)
        must_be_numbers(server, states)
        return Given(self.shape.picked(states, self.given), choice.token_ids[0])

    def _taken(self, server: Server, told: str, ids: list[int]) -> torch.Tensor:
        """Read and remove the file: by its name alone, in the folder that the user means, whatever path a server says."""
        name = told.rpartition("/")[2]
        if not _NAME.fullmatch(name):
            raise MeasureError(f"{server.url} hands over a file of a strange name: {shown(told)}")
        path = self.handed / name
        most = len(ids) * len(self.given) * self.shape.width * 4 + SLACK_BYTES
        try:
            content = _whole(path, most, shown(told))
            found = load(content)
            states, tokens = found["hidden_states"], found["token_ids"]
        except (SafetensorError, KeyError):
            raise MeasureError(f"{path}: not a file of states") from None
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}: vLLM writes for its own user alone, be the same"
            ) from None
        finally:
            for one in (path, path.with_name(name + ".lock")):
                with contextlib.suppress(OSError):
                    one.unlink(missing_ok=True)
        wanted = (len(ids), len(self.given), self.shape.width)
        if tuple(states.shape) != wanted:
            raise UsageError(
                f"{server.url} gave states of the shape {list(states.shape)}, not {list(wanted)}: start it with {self.flags}"
            )
        if tokens.tolist() != ids:
            raise MeasureError(f"{path}: holds other tokens than were asked for")
        return states.to(torch.bfloat16)


def _whole(path: Path, most: int, told: str) -> bytes:
    """Return a file's bytes once its writer has let go of the lock."""
    lock, began = path.with_name(path.name + ".lock"), time.monotonic()
    while time.monotonic() - began < WRITTEN_S:
        try:
            handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if path.exists():  # a connector that keeps no locks has written it before it answered
                return _read(path, most)
            if time.monotonic() - began > APPEARS_S:
                raise UsageError(
                    f"the server wrote {told}, and {path} is not there: give --handed its folder as this machine sees it"
                ) from None
        else:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                return _read(path, most)
            finally:
                os.close(handle)
        time.sleep(LOOK_S)
    raise MeasureError(f"{path}: was not whole within {WRITTEN_S:.0f} s")


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        raise MeasureError(f"{path}: the server could not write it (is its disk full?)") from None
    if len(content) > most:
        raise MeasureError(f"{path}: is longer than the states that were asked for")
    return content
