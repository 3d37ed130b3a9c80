"""Memory on each GPU: weights and cache against what is free, by the fraction that the engine goes by."""

from collections.abc import Iterator

import msgspec

from vigil.preflight.command import Command, Given
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.holders import held, how_to_end
from vigil.preflight.needs import Needs, needs_of
from vigil.preflight.ranks import Ranks, whole
from vigil.preflight.seen_host import GpuSeen, HostSeen
from vigil.preflight.visible import used, variable
from vigil.screen import size

FRACTION = {"sglang": ("--mem-fraction-static",), "vllm": ("--gpu-memory-utilization",)}
SLACK = 0.02
"""The driver counts a little more as a GPU's memory than CUDA does (0.5 % on an H200)."""
UNBALANCED = 0.85
"""SGLang refuses below 0.9 (distributed/bootstrap.py of 0.5.23), measured after each rank took its first memory."""
_VLLM_CHECKS = (0, 10)
"""From here on vLLM refuses a start with less than its fraction free (v1/worker/utils.py, `request_memory`, of 0.32)."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's fraction. `low`, `high`: its bounds, the same where it is given."""

    low: float
    high: float
    given: Given | None


def check_memory(command: Command, host: HostSeen) -> Iterator[Finding]:
    """Find weights that cannot fit, a fraction that is not free, and caches that are too small for a request."""
    using = used(command, host)
    budget = _budget(command)
    if using is None or budget is None:
        return
    ranks, gpus = using
    known = [one for one in gpus if one.free_bytes is not None and one.total_bytes]
    if len(known) < len(gpus):
        return
    tight = min(known, key=lambda one: one.free_bytes or 0)
    needs = needs_of(command, host, ranks)
    found = list(_too_little_free(command, host, budget, tight))
    if needs is not None and not found:
        found = list(_too_heavy(command, budget, needs, tight)) or list(_cache(command, budget, needs, tight))
    yield from found
    yield from _unbalanced(command, host, ranks, known)


def _budget(command: Command) -> Budget | None:
    names = FRACTION.get(command.engine, ())
    given, value = command.last(*names), command.number(*names)
    if given is not None:
        fits = value is not None and 0 < value <= 1
        return Budget(low=value, high=value, given=given) if value is not None and fits else None
    if command.engine == "vllm":  # 0.9 before, 0.92 in 0.32 (config/cache.py)
        return Budget(low=0.9, high=0.92, given=None)
    return Budget(low=0.0, high=1.0, given=None)  # SGLang reckons it from the GPU: no more than all


def _capacity(command: Command, gpu: GpuSeen) -> int:
    """Return what the fraction is taken of: vLLM's is of all memory, SGLang's of what is free at the start."""
    return (gpu.total_bytes if command.engine == "vllm" else gpu.free_bytes) or 0


def _at(given: Given | None) -> tuple[int | None, int]:
    return (given.at, given.count) if given is not None else (None, 1)


def _too_little_free(command: Command, host: HostSeen, budget: Budget, gpu: GpuSeen) -> Iterator[Finding]:
    total, free = gpu.total_bytes or 0, gpu.free_bytes or 0
    if command.engine != "vllm" or free >= budget.low * total:
        return
    sure = free < (budget.low - SLACK) * total and _version(host) >= _VLLM_CHECKS
    at, count = _at(budget.given)
    most = int((free / total - SLACK) * 100) / 100
    lower = f"--gpu-memory-utilization {most:g} would fit what is free" if most > 0 else "nothing fits beside it"
    who = ": " + "; ".join(held(one) for one in gpu.holders[:3]) if gpu.holders else ""
    yield Finding(
        code="MEM001",
        severity=Severity.FATAL if sure else Severity.WARNING,
        text=f"GPU {gpu.index} has {size(free)} of {size(total)} free, less than {budget.low:g} x {size(total)} = "
        f"{size(int(budget.low * total))}, which vLLM wants to find free at the start{who}",
        advice=f"{how_to_end(gpu.holders)}; {lower}" if gpu.holders else f"free the GPU; {lower}",
        at=at,
        count=count,
        seen="NVIDIA's driver; vllm 0.32, v1/worker/utils.py: request_memory",
    )


def _version(host: HostSeen) -> tuple[int, ...]:
    parts = (host.program.engine or "" if host.program is not None else "").split(".")[:2]
    return tuple(int(one) for one in parts if one.isdigit())


def _too_heavy(command: Command, budget: Budget, needs: Needs, gpu: GpuSeen) -> Iterator[Finding]:
    room = budget.high * _capacity(command, gpu)
    room = min(room, gpu.free_bytes or 0)
    if needs.weights <= room:
        return
    at, count = _at(budget.given)
    parts = " + ".join(f"{one.what.lstrip('-')} {size(one.bytes)}" for one in needs.models)
    yield Finding(
        code="MEM001",
        severity=Severity.FATAL if needs.sure > room else Severity.WARNING,
        text=f"weights {size(needs.weights)} on each GPU (files: {parts}) > {budget.high:g} x {size(_capacity(command, gpu))}, "
        f"of which {size(gpu.free_bytes)} are free on GPU {gpu.index} of {size(gpu.total_bytes)}",
        advice="spread it over more GPUs (--tensor-parallel-size), take a quantised checkpoint, or a GPU with more memory",
        at=at,
        count=count,
        seen="the sizes of the model's files; NVIDIA's driver",
    )


def _cache(command: Command, budget: Budget, needs: Needs, gpu: GpuSeen) -> Iterator[Finding]:
    """Warn where one request as long as asked for does not fit beside the weights.

    vLLM refuses such a start; SGLang starts, and refuses such requests.
    """
    context, given = _context(command, needs)
    if needs.token is None or context is None or (command.engine == "sglang" and given is None):
        return
    room = int(min(budget.high * _capacity(command, gpu), gpu.free_bytes or 0))
    cache = needs.token * context
    if needs.weights + cache <= room:
        return
    at, count = _at(given)
    fits = max(0, (room - needs.weights) // needs.token // 1024 * 1024)
    flag = "--max-model-len" if command.engine == "vllm" else "--context-length"
    yield Finding(
        code="MEM002",
        severity=Severity.WARNING,
        text=f"weights {size(needs.weights)} + cache {size(cache)} of one request of {context} tokens > "
        f"{budget.high:g} x {size(_capacity(command, gpu))} on each GPU",
        advice=f"about {fits} tokens fit: {flag} {fits}, a smaller cache (--kv-cache-dtype fp8), or more GPUs",
        at=at,
        count=count,
        seen="config.json and the sizes of the model's files; NVIDIA's driver",
    )


def _context(command: Command, needs: Needs) -> tuple[int | None, Given | None]:
    """Return the longest request, and the flag that says so, where one does."""
    names = ("--max-model-len",) if command.engine == "vllm" else ("--context-length",)
    given = command.last(*names)
    if given is not None:
        found = whole(command, *names)
        return (found if found is not None and found > 0 else None), given
    return needs.models[0].numbers.get("max_position_embeddings"), None


def _unbalanced(command: Command, host: HostSeen, ranks: Ranks, gpus: list[GpuSeen]) -> Iterator[Finding]:
    """Find GPUs with very different room: SGLang refuses them where tensor parallel ranks share a model."""
    if command.engine != "sglang" or ranks.tensor < 2:  # noqa: PLR2004
        return
    least, most = (pick(gpus, key=lambda one: one.free_bytes or 0) for pick in (min, max))
    if (least.free_bytes or 0) >= UNBALANCED * (most.free_bytes or 0):
        return
    off = (variable(command, host, "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK") or "1").lower() in {"0", "false", "no"}
    off = off or variable(command, host, "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK") is not None or ranks.data > 1
    who = ": " + "; ".join(held(one) for one in least.holders[:3]) if least.holders else ""
    yield Finding(
        code="MEM006",
        severity=Severity.WARNING if off else Severity.FATAL,
        text=f"GPU {least.index} has {size(least.free_bytes)} free and GPU {most.index} {size(most.free_bytes)}: SGLang refuses "
        f"ranks of which one has less than 0.9 of another's{who}",
        advice=how_to_end(least.holders) if least.holders else "choose GPUs that are alike with CUDA_VISIBLE_DEVICES",
        seen="NVIDIA's driver; sglang 0.5.23, distributed/bootstrap.py",
    )
