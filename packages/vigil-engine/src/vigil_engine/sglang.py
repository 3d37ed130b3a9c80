"""SGLang's plugin: puts a decider in the place of the adaptive mode's own policy (SGLang 0.5.14 and newer).

The mechanism stays SGLang's `--speculative-adaptive`: a controller in each scheduler process keeps graphs and attention backends
for each number of steps, and asks its policy before each decode step. Only the policy is replaced. SGLang's own takes its tier
from the size of one batch, so that it flips each step at a threshold, and where a tier of no steps is one of several it tries
another every five batches, whatever that costs. A chain (top-k 1) of n steps has n draft tokens: k is the number of steps.

Each rank decides for itself, from the batch size alone, which all ranks share. A mode from outside reaches rank 0 first. It
travels to the others as one more request, in the broadcast that brings them their requests, so that it counts from the same step
on everywhere. Nothing that comes from the server's own network interface can be one.

SGLang logs the error of a plugin and goes on without it: whatever goes wrong here is in the attestation, and SGLang's own policy
stays in force.
"""

import functools
import json
import logging
import os
from importlib import metadata
from typing import Any, Deque, Dict, List, NamedTuple, Optional

from .attestation import Attestation
from .contract import CONTROLLER, RECEIVER, SGLANG, SGLANG_CONTROL, SGLANG_SCHEDULER, differences, found
from .control import listen
from .decider import Decider
from .schedule import ScheduleError, all_k, parse, read

SCHEDULE, FOLDER = "VIGIL_ENGINE_SCHEDULE", "VIGIL_ENGINE_DIR"
_DONE = "_vigil_engine"
_IN_FLIGHT = 4
"""Decode steps that may be launched before their results are counted: one under overlap."""
_log = logging.getLogger("sglang.srt.vigil_engine")


class Told(NamedTuple):
    """A mode on its way from rank 0 to all ranks, among the requests."""

    mode: str


def load() -> None:
    """Put the decider's hooks into SGLang where a schedule was given; the entry point of `sglang.srt.plugins`."""
    text, folder = os.environ.get(SCHEDULE), os.environ.get(FOLDER)
    if not text or not folder:
        return
    try:
        try:
            held = read(text)
            lines = differences(SGLANG)
        except ScheduleError as error:
            lines = [str(error)]
        if lines:
            _refuse(folder, *lines)
            return
        controller = found(CONTROLLER)
        if not hasattr(controller, _DONE):
            setattr(controller, _DONE, True)
            _hook(controller, held, folder)
    except Exception as error:  # noqa: BLE001 - never worse: the engine goes on as it was
        _refuse(folder, f"{type(error).__name__}: {error}")


def _refuse(folder: str, *lines: str, rank: str = "") -> None:
    """Say loudly that nothing is switched here, and why."""
    told = Attestation(folder, "sglang", _release(), rank)
    told.refused += lines
    told.write()
    _log.error("vigil-engine does not switch speculation: %s", "; ".join(lines))


def _release() -> str:
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
        return ""


def _hook(controller: Any, held: Dict[str, Any], folder: str) -> None:
    init = controller.__init__

    @functools.wraps(init)
    def begin(self: Any, worker: Any, *args: Any, **kwargs: Any) -> None:
        init(self, worker, *args, **kwargs)
        try:
            _take_over(self, worker, held, folder)
        except Exception as error:  # noqa: BLE001 - never worse
            _refuse(folder, f"{type(error).__name__}: {error}")

    controller.__init__ = begin


def _take_over(controller: Any, worker: Any, held: Dict[str, Any], folder: str) -> None:
    rank = rank_of(worker)
    why = why_not(worker, controller.params.candidate_steps, held)
    if why:
        _refuse(folder, why, rank=f"TP{rank}")
        return
    attestation = Attestation(folder, "sglang", _release(), f"TP{rank}")
    policy = Policy(controller.params, Decider(held, attestation))
    controller.params = policy
    attestation.write()
    _log.info("vigil-engine switches speculation: %s", json.dumps(attestation.told()["tiers"]))
    lines = differences(SGLANG_CONTROL)
    try:
        if not lines:
            _carry(policy, rank)
    except OSError as error:
        lines = [str(error)]
    if lines:
        _log.warning("vigil-engine cannot be told anything while the server runs: %s", "; ".join(lines))
    elif rank == 0:
        listen(folder, policy.decider)


def rank_of(worker: Any) -> int:
    """Return the tensor-parallel rank of a worker's process."""
    state = getattr(worker, "ps", None)  # later than SGLang 0.5.17 it is known to the process alone
    if state is None:
        state = found("sglang.srt.runtime_context.get_parallel")()
    return int(state.tp_rank)


def why_not(worker: Any, candidates: List[int], held: Dict[str, Any]) -> str:
    """Return what of the engine's settings is in the way of a schedule; "" where nothing is."""
    schedule = parse(held)
    steps, wanted = worker.speculative_num_steps, all_k(schedule)
    if getattr(worker, "topk", 1) != 1:
        return f"--speculative-eagle-topk is {worker.topk}; only chains, of top-k 1, can be switched"
    if steps != schedule.tiers[0].k:
        return f"--speculative-num-steps is {steps}; the schedule begins with k {schedule.tiers[0].k}"
    if not set(wanted) <= set(candidates):
        lacks = sorted(set(wanted) - set(candidates))
        return f"k {lacks} is wanted, and --speculative-adaptive-config has candidate_steps {sorted(candidates)} in all"
    return ""


class Policy:
    """What stands in the place of SGLang's policy: asked before each decode step, told after each verification."""

    def __init__(self, own: Any, decider: Decider) -> None:
        self.decider = decider
        self.mode: Optional[str] = None  # told to all ranks, in force from the next step on
        self._own = own
        self._graphs: Optional[List[int]] = None
        self._launched: "Deque[int]" = Deque(maxlen=_IN_FLIGHT)
        self._broken = False

    @property
    def candidate_steps(self) -> List[int]:
        """Every number of steps for which graphs are kept."""
        return all_k(self.decider.schedule)

    def set_cuda_graph_bs(self, cuda_graph_bs: Optional[List[int]]) -> None:
        """Note the batch sizes that graphs are made for; None: none."""
        self._graphs = sorted(cuda_graph_bs) if cuda_graph_bs else None
        self._own.set_cuda_graph_bs(cuda_graph_bs)

    def cuda_graph_bs_for_step(self, step: int) -> Optional[List[int]]:  # noqa: ARG002 - SGLang's protocol
        """Return the batch sizes that may run with so many steps: all, since a mode or a rest may hold any k at any load."""
        return self._graphs

    def get_steps_for_batch(self, batch_size: int) -> int:
        """Return the k of the decode step that is about to run."""
        if self._broken:
            return int(self._own.get_steps_for_batch(batch_size))
        try:
            mode, self.mode = self.mode, None
            k = self.decider.step(batch_size, mode)
        except Exception as error:  # noqa: BLE001 - never worse: the engine's own policy from here on
            self._broken = True
            self.decider.attestation.errors.append(f"{type(error).__name__}: {error}")
            self.decider.attestation.write()
            _log.exception("vigil-engine gave up: SGLang's own policy is in force")
            return int(self._own.get_steps_for_batch(batch_size))
        self._launched.append(k)
        return k

    def on_verify_complete(self, num_correct_drafts_per_req: List[int], batch_size: int) -> Optional[int]:
        """Count what a step accepted, by the k that it was launched with. No switch comes from here."""
        if self._broken:
            told = self._own.on_verify_complete(num_correct_drafts_per_req, batch_size)
            return None if told is None else int(told)
        k = self._launched.popleft() if self._launched else 0
        if k:
            for accepted in num_correct_drafts_per_req:
                self.decider.attestation.acceptance.saw(k, accepted)
        return None


def _carry(policy: Policy, rank: int) -> None:
    """Let a mode that rank 0 was asked for travel to all ranks among their requests."""
    scheduler, receiver = found(SGLANG_SCHEDULER), found(RECEIVER)
    pull, process = receiver._pull_raw_reqs, scheduler.process_input_requests  # noqa: SLF001 - in the contract

    @functools.wraps(pull)
    def pulled(self: Any, *args: Any, **kwargs: Any) -> Any:
        requests = pull(self, *args, **kwargs)
        if rank == 0 and isinstance(requests, list):
            mode = policy.decider.asked()
            if mode is not None:
                requests.append(Told(mode))
        return requests

    @functools.wraps(process)
    def processed(self: Any, recv_reqs: Any, *args: Any, **kwargs: Any) -> Any:
        rest = [one for one in recv_reqs if not isinstance(one, Told)] if recv_reqs else recv_reqs
        if recv_reqs and len(rest) < len(recv_reqs):
            policy.mode = next(one.mode for one in reversed(recv_reqs) if isinstance(one, Told))
        return process(self, rest, *args, **kwargs)

    receiver._pull_raw_reqs, scheduler.process_input_requests = pulled, processed  # noqa: SLF001 - as above
