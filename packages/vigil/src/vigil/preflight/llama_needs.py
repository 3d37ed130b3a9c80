"""What a llama-server must hold: the cache of its whole context, by the numbers in its GGUF file, and where it is put.

llama.cpp b9093 to b11434: the cache is made for all of `-c` at the start (src/llama-kv-cache.cpp), however many slots share it.
"""

from collections.abc import Callable

import msgspec

from vigil.preflight.command import Command, Given
from vigil.preflight.seen_models import GgufSeen
from vigil.screen import size

# Bytes of 32 numbers (ggml's blocks).
CACHE_BYTES = {
    "f32": 128, "f16": 64, "bf16": 64, "q8_0": 34, "q4_0": 18, "q4_1": 20, "iq4_nl": 18, "q5_0": 22, "q5_1": 24,
}  # fmt: skip
# Architectures whose layers all keep the plain cache that their numbers tell; others window, share or replace it in some layers.
PLAIN = frozenset({
    "llama", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe", "internlm2", "command-r", "starcoder2",
    "stablelm", "granite", "granitemoe", "olmo", "olmoe", "baichuan", "deepseek", "glm4", "chatglm", "gemma", "phi2", "falcon",
    "gptneox", "mpt", "bloom", "orion", "xverse", "minicpm", "ernie4_5", "ernie4_5-moe", "arcee", "seed_oss", "mistral3",
})  # fmt: skip
CONTEXT = ("-c", "--ctx-size")
LAYERS = ("-ngl", "--gpu-layers", "--n-gpu-layers")
ALL_LAYERS = 999  # what people write for all of them
# With one of these some weights, or the cache, lie elsewhere than the numbers say.
PLACED = (
    "-ot", "--override-tensor", "-cmoe", "--cpu-moe", "-ncmoe", "--n-cpu-moe", "-ts", "--tensor-split", "--rpc", "-dev",
    "--device", "--models-dir", "--models-preset",
)  # fmt: skip


Flag = tuple[tuple[str, ...], str]
"""The names of a flag, and the variable that stands for it."""


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """`tokens` are held in `bytes`; `given` is the flag that says how many, `told` the types of keys and values."""

    tokens: int
    bytes: int
    given: Given | None
    told: str


def value_of(command: Command, names: tuple[str, ...], variable: str) -> str | None:
    """Return what a setting is set to: by a flag, else by llama-server's variable."""
    return command.text(*names) or command.env.get(variable)


def whole(text: str | None) -> int | None:
    """Return a whole number, None where it is none."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.removeprefix("-").isdigit() and len(digits) < 12 else None  # noqa: PLR2004


def cache_of(command: Command, gguf: GgufSeen, draft: GgufSeen | None = None) -> Cache | None:
    """Return the cache, or None where its size is not known: the server fits a context to the memory where none is given.

    `draft`: one that proposes as a model of its own. Its cache is as long as the target's (xllamacpp 2026.10, measured: with
    -c 4096 -np 2 both have 4096 cells); where its size is not known, the target's alone is told.
    """
    tokens = _tokens(command, gguf)
    own = _bytes(command, gguf, tokens, _cache_flag)
    if tokens is None or own is None:
        return None
    other = _bytes(command, draft, tokens, _draft_flag) if draft is not None else None
    taken = own[0] + (other[0] if other is not None else 0)
    told = own[1] if other is None else f"{own[1]}; {size(other[0])} of it for the draft"
    return Cache(tokens=tokens, bytes=taken, given=command.last(*CONTEXT), told=told)


def _bytes(command: Command, gguf: GgufSeen, tokens: int | None, flag: Callable[[str], Flag]) -> tuple[int, str] | None:
    """Return how many bytes a model's cache takes, and of which types it is."""
    row, types = _numbers(gguf), [value_of(command, *flag(one)) or "f16" for one in ("k", "v")]
    if tokens is None or row is None or not all(one in CACHE_BYTES for one in types):
        return None
    layers, keys, values = row
    each = (keys * CACHE_BYTES[types[0]] + values * CACHE_BYTES[types[1]]) // 32
    return tokens * layers * each, " and ".join(dict.fromkeys(types))


def _cache_flag(which: str) -> Flag:
    return (f"-ct{which}", f"--cache-type-{which}"), f"LLAMA_ARG_CACHE_TYPE_{which.upper()}"


def _draft_flag(which: str) -> Flag:
    names = f"-ct{which}d", f"--spec-draft-type-{which}", f"--cache-type-{which}-draft"
    return names, f"LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_{which.upper()}"


def _tokens(command: Command, gguf: GgufSeen) -> int | None:
    asked = whole(value_of(command, CONTEXT, "LLAMA_ARG_CTX_SIZE"))
    if asked == 0:
        return gguf.number("context_length")  # "0 = loaded from model", and it is not made smaller to fit
    return asked if asked is not None and asked > 0 else None


def _numbers(gguf: GgufSeen) -> tuple[int, int, int] | None:
    """Return the layers, and how many numbers each keeps of a token's keys and values; None where that is not all there is."""
    layers, heads, shared = (
        gguf.number(one) for one in ("block_count", "attention.head_count", "attention.head_count_kv")
    )
    width = gguf.number("embedding_length")
    special = any(".ssm." in one or "sliding_window" in one or "_mla" in one for one in (*gguf.metadata, *gguf.lengths))
    if gguf.architecture not in PLAIN or special or not layers or not heads or not width:
        return None
    if shared is None and f"{gguf.architecture}.attention.head_count_kv" in gguf.lengths:
        return None  # one number for each layer
    shared = shared or heads
    keys = gguf.number("attention.key_length") or width // heads
    values = gguf.number("attention.value_length") or width // heads
    return layers, shared * keys, shared * values


def gpu_layers(command: Command) -> int | None:
    """Return how many layers are asked to lie on GPUs; None: as many as fit."""
    told = value_of(command, LAYERS, "LLAMA_ARG_N_GPU_LAYERS")
    if told == "all":
        return ALL_LAYERS
    found = whole(told)
    return None if found == -1 else ALL_LAYERS if found is not None and found < 0 else found


def without_gpus(command: Command) -> bool:
    """Tell whether the command keeps the cache in the host's memory, whatever GPUs there are."""
    none = value_of(command, ("-dev", "--device"), "LLAMA_ARG_DEVICE") == "none"
    return none or gpu_layers(command) == 0 or command.last("-nkvo", "--no-kv-offload") is not None
