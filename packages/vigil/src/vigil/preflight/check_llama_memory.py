"""Memory of a llama-server: its weights and the cache of its whole context against the GPUs and the host.

Weights are mapped from their file, so that the host's memory need not hold them at once; the cache is written to at the start.
"""

from collections.abc import Iterator

from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.llama_needs import PLACED, Cache, cache_of, gpu_layers, value_of, without_gpus
from vigil.preflight.placing import speculation
from vigil.preflight.pointed import pointed
from vigil.preflight.seen_host import HostSeen, MemorySeen
from vigil.preflight.seen_models import GgufSeen, ModelSeen
from vigil.preflight.visible import variable, visible
from vigil.screen import size

UNIFIED = "GGML_CUDA_ENABLE_UNIFIED_MEMORY"
SMALLER = "-ctk q8_0 -ctv q8_0"
SEEN = "the numbers in the GGUF file; llama.cpp b11434, src/llama-kv-cache.cpp"


def check_llama_memory(
    command: Command, host: HostSeen | None, model: ModelSeen, draft: ModelSeen | None = None
) -> Iterator[Finding]:
    """Find a context whose cache cannot be held, and weights that do not fit where they are asked to lie."""
    gguf = model.gguf
    if command.engine != "llamacpp" or host is None or gguf is None or model.kind != "file":
        return
    if host.outside or host.program is None:  # a llama-server may be a script, too: it is here where its program is
        return
    simple = speculation(command)[0] == "draft-simple"  # other kinds keep less, or nothing, of their own
    cache = cache_of(command, gguf, draft.gguf if draft is not None and simple else None)
    if without_gpus(command):
        yield from _in_host(command, host.memory, model, cache, sure=True)
    elif command.last(*PLACED) is None and variable(command, host, UNIFIED) is None:
        yield from _on_gpus(command, host, model, gguf, cache)


def _on_gpus(
    command: Command, host: HostSeen, model: ModelSeen, gguf: GgufSeen, cache: Cache | None
) -> Iterator[Finding]:
    """Find what does not fit on the GPUs. Only NVIDIA's are seen, and a build may use none of them: no more than a warning."""
    seen = visible(command, host)
    if seen is None or any(one.free_bytes is None for one in seen.gpus):
        return
    if not seen.gpus:
        yield from _in_host(command, host.memory, model, cache, sure=False)
        return
    free = [one.free_bytes or 0 for one in seen.gpus]
    room = max(free) if value_of(command, ("-sm", "--split-mode"), "LLAMA_ARG_SPLIT_MODE") == "none" else sum(free)
    asked, layers = gpu_layers(command), gguf.number("block_count")
    cached = cache.bytes if cache is not None else 0
    if asked is not None and layers is not None and asked > layers:
        if model.weights_bytes + cached > room:
            yield _too_much(command, model, cache, f"{size(room)} free on {_gpus(len(free))}")
        return
    memory = _room(host.memory)
    if asked is None and memory is not None and cache is not None and cached > room + memory:
        yield _too_much(
            command, model, cache, f"{size(room)} free on {_gpus(len(free))} and {size(memory)} in the host"
        )


def _gpus(count: int) -> str:
    return "the GPU" if count == 1 else f"{count} GPUs"


def _too_much(command: Command, model: ModelSeen, cache: Cache | None, there: str) -> Finding:
    given = command.last("-ngl", "--gpu-layers", "--n-gpu-layers") or (cache.given if cache is not None else None)
    return pointed(
        given,
        "MEM001",
        Severity.WARNING,
        f"{_needs(model, cache)} > {there}",
        f"leave -ngl out, so that what does not fit stays in the host's memory, or give a smaller -c, or {SMALLER}",
        seen=f"{SEEN}; NVIDIA's driver",
    )


def _needs(model: ModelSeen, cache: Cache | None) -> str:
    weights = f"weights {size(model.weights_bytes)}"
    return (
        weights if cache is None else f"{weights} + cache {size(cache.bytes)} of {cache.tokens} tokens ({cache.told})"
    )


def _in_host(
    command: Command, memory: MemorySeen | None, model: ModelSeen, cache: Cache | None, *, sure: bool
) -> Iterator[Finding]:
    """Find what the host cannot hold. `sure`: no GPU can take it, so that more than all memory and swap is the end."""
    room = _room(memory)
    if memory is None or room is None:
        return
    if cache is not None and cache.bytes > room:
        yield _too_long(cache, memory, room, sure=sure)
    elif _read_whole(command) and model.weights_bytes + (cache.bytes if cache is not None else 0) > room:
        yield _too_heavy(command, model, cache, room)


def _too_long(cache: Cache, memory: MemorySeen, room: int, *, sure: bool) -> Finding:
    most = min(memory.total or room, memory.limit or memory.total or room)
    never = memory.swap is not None and cache.bytes > most + memory.swap
    swap = f", and {size(most)} with {size(memory.swap)} of swap are all there is" if never else ""
    taken = f"the cache of {cache.tokens} tokens takes {size(cache.bytes)} ({cache.told})"
    return pointed(
        cache.given,
        "MEM003",
        Severity.FATAL if sure and never else Severity.WARNING,
        f"{taken}, and the host has {size(room)} free{swap}",
        f"about {_fitting(cache, room)} tokens fit: a smaller -c, or {SMALLER}",
        seen=SEEN,
    )


def _too_heavy(command: Command, model: ModelSeen, cache: Cache | None, room: int) -> Finding:
    given = command.last("--no-mmap", "--mlock", "-lm", "--load-mode")
    name = given.name if given is not None else "the mode"
    return pointed(
        given,
        "MEM003",
        Severity.WARNING,
        f"{_needs(model, cache)} > {size(room)} free in the host, and {name} keeps all weights in memory",
        "leave that flag out: mapped weights are read again where memory is short",
        seen=SEEN,
    )


def _read_whole(command: Command) -> bool:
    mode = command.text("-lm", "--load-mode") or ""
    return command.last("--no-mmap", "--mlock") is not None or mode in {"none", "mlock", "mmap+mlock", "dio"}


def _fitting(cache: Cache, room: int) -> int:
    return room * cache.tokens // cache.bytes // 1024 * 1024


def _room(memory: MemorySeen | None) -> int | None:
    """Return what a new process may take of the host's memory, None where that is not known."""
    if memory is None or memory.free is None:
        return None
    return min(memory.free, memory.limit or memory.free)
