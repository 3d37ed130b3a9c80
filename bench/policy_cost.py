"""What a decision costs, in microseconds a step: the asked limit is 20.

python bench/policy_cost.py
"""

import statistics
import time

from policy_trace import ours, poisson_load

STEPS = 100_000


def main() -> None:
    """Print the median and the slowest of ten rounds, and the 99.9th of a hundred among single steps."""
    loads = list(poisson_load(40, STEPS, step_s=0.008, life_s=2.5, seed=1))
    rounds = []
    for _ in range(10):
        decide = ours(40, 3)
        start = time.perf_counter()
        for load in loads:
            decide(load)
        rounds.append((time.perf_counter() - start) / len(loads) * 1e6)
    decide = ours(40, 3)
    single = []
    for load in loads:
        start = time.perf_counter()
        decide(load)
        single.append((time.perf_counter() - start) * 1e6)
    single.sort()
    slow = single[int(len(single) * 0.999)]
    print(
        f"{statistics.median(rounds):.2f} us a step (slowest round {max(rounds):.2f}; 99.9 % of steps within {slow:.2f} us)"
    )


if __name__ == "__main__":
    main()
