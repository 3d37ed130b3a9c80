"""Run in SGLang's own environment: its real adaptive controller over a worker that is none, with vigil-engine loaded into it.

SGLang speculates on GPUs only; what decides, and what is asked of it, is the same code on a CPU. Prints what came of a trace of
loads.
"""

import inspect
import itertools
import json
import sys
from typing import Any

from sglang.srt.plugins import load_plugins

load_plugins()  # as every process of a server does first: it finds vigil-engine by its entry point

from sglang.srt.speculative.adaptive_runtime_state import AdaptiveController  # noqa: E402 - after the plugins, as in a server
from sglang.srt.speculative.adaptive_spec_params import AdaptiveSpeculativeParams  # noqa: E402


class Ranks:
    tp_rank = 0


class Worker:
    """What the controller asks of a worker: states for each number of steps, and to take one."""

    def __init__(self) -> None:
        self.speculative_num_steps, self.topk, self.ps = 3, 1, Ranks()
        self.built: list[Any] = []

    def build_adaptive_runtime_state(
        self, speculative_num_steps: int, speculative_num_draft_tokens: int, cuda_graph_bs: list[int] | None = None
    ) -> int:
        self.built.append([speculative_num_steps, speculative_num_draft_tokens, cuda_graph_bs])
        return speculative_num_steps

    def apply_runtime_state(self, state: int) -> None:
        self.speculative_num_steps = state


def controller(worker: Worker, config: str) -> AdaptiveController:
    # 0.5.18 and newer are handed the policy, those before the path of its file.
    if "policy" in inspect.signature(inspect.unwrap(AdaptiveController.__init__)).parameters:
        return AdaptiveController(worker, AdaptiveSpeculativeParams(initial_steps=3, cfg_path=config))
    return AdaptiveController(worker, config)


def main() -> None:
    worker = Worker()
    found = controller(worker, sys.argv[1])
    found.register(3, 3)
    found.init_states([1, 2, 4, 8])
    ks = []
    for load in json.loads(sys.argv[2]):
        found.activate_step_by_batch(load)
        steps = worker.speculative_num_steps
        found.on_verify_complete([2] * load if steps else [0] * load, load)
        ks.append(steps)
    runs = [[k, len(list(run))] for k, run in itertools.groupby(ks)]
    print(json.dumps({"policy": type(found.params).__module__, "built": worker.built, "runs": runs}))


main()
