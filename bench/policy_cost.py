"""What a decision costs, in microseconds a step: the policy alone, and all that happens in the engine's step; 20 are asked for.

    python bench/policy_cost.py

The second is `Decider.step` as vLLM's table calls it, with the account that it writes once a second and at each change; the load
hovers at the threshold, and each running request's draft is counted.
"""

import statistics
import tempfile
import time
from collections.abc import Callable

from policy_trace import ours, poisson_load
from vigil_engine.attestation import Attestation
from vigil_engine.decider import Decider
from vigil_engine.schedule import off_above

STEPS = 100_000
ROUNDS = 10


def whole(folder: str) -> Callable[[int], int]:
    """Return a decider with its account, as it stands in an engine."""
    decider = Decider(off_above(40, 3, "vllm"), Attestation(folder, "vllm", "0.32.0"))
    return lambda load: decider.step(load, decider.asked())


def measured(name: str, make: Callable[[], Callable[[int], int]], loads: list[int]) -> None:
    """Print the median of some rounds, the slowest round, and what 99.9 % of the single steps stay within."""
    rounds = []
    for _ in range(ROUNDS):
        decide = make()
        start = time.perf_counter()
        for load in loads:
            decide(load)
        rounds.append((time.perf_counter() - start) / len(loads) * 1e6)
    decide, single = make(), []
    for load in loads:
        start = time.perf_counter()
        decide(load)
        single.append((time.perf_counter() - start) * 1e6)
    single.sort()
    told = f"slowest round {max(rounds):.2f}, 99.9 % of steps within {single[int(len(single) * 0.999)]:.2f}"
    print(f"{name}: {statistics.median(rounds):.2f} us a step ({told}, the slowest {single[-1]:.0f})")


def main() -> None:
    """Print one line for the policy, one for the whole decision."""
    loads = list(poisson_load(40, STEPS, step_s=0.008, life_s=2.5, seed=1))
    measured("policy", lambda: ours(40, 3), loads)
    with tempfile.TemporaryDirectory() as folder:
        measured("decision with its account", lambda: whole(folder), loads)


if __name__ == "__main__":
    main()
