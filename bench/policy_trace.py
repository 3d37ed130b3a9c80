"""How often a load that hovers at the threshold switches speculation: ours, a bare threshold, and SGLang's adaptive policy.

All on the same trace: requests arrive at random (Poisson) and live for random numbers of tokens; each decode step takes
`--step-ms`. `--sglang FOLDER` holds a `sglang` package of any release from 0.5.14 on; its policy's file alone is loaded, with a
logger in place of the rest, and fed 30 % acceptance of a first token.

    python bench/policy_trace.py --minutes 10 --above 40 --sglang /tmp/gsite
"""

import argparse
import importlib.util
import json
import logging
import random
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path

from vigil_engine.policy import State, k_of, step
from vigil_engine.schedule import off_above, parse

FIRST_TOKEN_ACCEPTED = 0.3
POLICY_FILE = "srt/speculative/adaptive_spec_params.py"


def poisson_load(mean: float, steps: int, *, step_s: float, life_s: float, seed: int) -> Iterator[int]:
    """Yield the running requests of each step: as many arrive as keep `mean` of them, each for `life_s` on average."""
    rng = random.Random(seed)
    running = [rng.expovariate(1 / life_s) for _ in range(round(mean))]
    arrival = rng.expovariate(mean / life_s)
    for number in range(steps):
        now = number * step_s
        while arrival <= now:
            running.append(arrival + rng.expovariate(1 / life_s))
            arrival += rng.expovariate(mean / life_s)
        running = [end for end in running if end > now]
        if running:
            yield len(running)


def switches(decide: Callable[[int], int], loads: list[int], per_minute: int) -> tuple[int, int]:
    """Return how often k changed, and how often in the worst minute."""
    changes, before = [], None
    for number, load in enumerate(loads):
        k = decide(load)
        if before is not None and k != before:
            changes.append(number)
        before = k
    worst = max((sum(1 for other in changes if at <= other < at + per_minute) for at in changes), default=0)
    return len(changes), worst


def ours(above: int, k: int) -> Callable[[int], int]:
    """Return vigil-engine's policy with its defaults."""
    schedule = parse(off_above(above, k, "sglang"))
    state = State()

    def decide(load: int) -> int:
        nonlocal state
        state = step(schedule, state, load)
        return k_of(schedule, state)

    return decide


def sglangs(folder: Path, k: int, config: dict[str, object] | None) -> Callable[[int], int]:
    """Return SGLang's own policy: with its defaults, or with a file."""
    for name in ("sglang", "sglang.srt", "sglang.srt.utils"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["sglang.srt.utils"].log_info_on_rank0 = lambda *_: None  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("sglang_adaptive", folder / "sglang" / POLICY_FILE)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder} holds no {POLICY_FILE}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = None
    if config is not None:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(config, file)
        path = file.name
    params = module.AdaptiveSpeculativeParams(k, path)
    rng = random.Random(7)

    def decide(load: int) -> int:
        steps = int(params.get_steps_for_batch(load))
        params.on_verify_complete([min(steps, int(rng.random() < FIRST_TOKEN_ACCEPTED)) for _ in range(load)], load)
        return steps

    return decide


def main() -> None:
    """Print one line a policy."""
    logging.disable()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--above", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--step-ms", type=float, default=8)
    parser.add_argument("--life-s", type=float, default=2.5)
    parser.add_argument("--mean", type=float, help="running requests on average (the threshold)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sglang", type=Path)
    given = parser.parse_args()
    step_s = given.step_ms / 1000
    per_minute = round(60 / step_s)
    arms: dict[str, Callable[[], Callable[[int], int]]] = {
        "vigil": lambda: ours(given.above, 3),
        "bare threshold (vLLM's schedule)": lambda: lambda load: 0 if load > given.above else 3,
    }
    if given.sglang and (given.sglang / "sglang" / POLICY_FILE).exists():
        hard = {"1": {"candidate_steps": [3]}, str(given.above + 1): {"candidate_steps": [0]}}
        arms["SGLang adaptive, default"] = lambda: sglangs(given.sglang, 3, None)
        arms["SGLang adaptive, hard threshold"] = lambda: sglangs(given.sglang, 3, hard)
    steps = round(given.minutes * per_minute)
    mean = given.mean or given.above
    traces = [
        list(poisson_load(mean, steps, step_s=step_s, life_s=given.life_s, seed=seed)) for seed in range(given.seeds)
    ]
    print(f"mean load {mean}, threshold {given.above}, {given.minutes:g} minutes, {given.seeds} seeds, ", end="")
    print(f"steps of {given.step_ms:g} ms, lives of {given.life_s:g} s")
    for name, made in arms.items():
        told = [switches(made(), trace, per_minute) for trace in traces]
        rate = sum(count for count, _ in told) / given.minutes / given.seeds
        print(f"{name:36} {rate:8.2f} switches a minute; worst minute {max(worst for _, worst in told)}")


if __name__ == "__main__":
    main()
