"""What a model needs of each GPU: its weights, and the cache of a request. Estimates, and what is sure of them."""

import msgspec

from vigil.preflight.command import Command
from vigil.preflight.ranks import Ranks, has_config
from vigil.preflight.seen_host import HostSeen, SizeSeen

SURE_SHARE = 0.93
"""What is loaded at the least: layers for speculation that nobody asked for stay out (2 % of DeepSeek-V3, 671B)."""
# With one of these the weights in memory are fewer or smaller than those in the files, or lie elsewhere.
_SHRINKS = (
    "--quantization", "-q", "--load-format", "--torchao-config", "--cpu-offload-gb", "--offload-group-size", "--hf-overrides",
    "--json-model-override-args", "--language-only", "--language-model-only", "--encoder-only", "--ple-offload-embedding",
    "--model-loader-extra-config", "--offload-backend", "--kt-weight-path", "--quantization-param-path", "--enable-weight-cache",
    "--mm-encoder-only", "--weight-cache", "--moe-dp-size", "--dwdp-size", "--offload-mode",
)  # fmt: skip
_WHOLE_FORMATS = frozenset({"auto", "safetensors", "pt"})
_WIDE = frozenset({"float32", "float", "torch.float32"})
_CACHE_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "bf16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of each GPU. `weights` as estimated; `sure`: no less than this is loaded (0: that cannot be said).

    `token`: what the cache of one token takes, None where that is not known.
    """

    weights: int
    sure: int
    token: int | None
    models: tuple[SizeSeen, ...]


def needs_of(command: Command, host: HostSeen, ranks: Ranks) -> Needs | None:
    """Return what each GPU must hold, or None where the served model's size is not known."""
    known = tuple(one for one in host.sizes if one.bytes and one.what != "--tokenizer-path")
    served = next((one for one in known if one.what == "model"), None)
    if served is None:
        return None
    weights = sum(_loaded(one) for one in known) // ranks.replica
    sure = 0 if _shrinks(command) else int(weights * SURE_SHARE)
    return Needs(weights=weights, sure=sure, token=_token_bytes(command, served, ranks), models=known)


def _loaded(one: SizeSeen) -> int:
    """Return the bytes in memory: both engines load a model of 32 bits in 16, where --dtype does not say otherwise."""
    wide = one.dtype in _WIDE or (not one.dtype and not one.quantised)
    return (one.bytes or 0) // 2 if wide else one.bytes or 0


def _shrinks(command: Command) -> bool:
    given = [
        one for one in command.all_of(*_SHRINKS) if not (one.plain == "--load-format" and one.value in _WHOLE_FORMATS)
    ]
    return bool(given) or has_config(command)


def _token_bytes(command: Command, served: SizeSeen, ranks: Ranks) -> int | None:
    """Return the bytes of one token's keys and values on each GPU (with latent attention: of one latent vector)."""
    numbers, width = served.numbers, _CACHE_BYTES.get(command.text("--kv-cache-dtype") or "auto")
    layers, heads = numbers.get("num_hidden_layers"), numbers.get("num_attention_heads")
    if not served.one_cache or width is None or not layers or not heads:
        return None
    layers = -(-layers // ranks.pipeline)
    latent = numbers.get("kv_lora_rank")
    if latent:
        return layers * (latent + numbers.get("qk_rope_head_dim", 0)) * width
    wide = numbers.get("head_dim") or numbers.get("hidden_size", 0) // heads
    of_each = max(1, numbers.get("num_key_value_heads", heads) // ranks.tensor)
    return layers * 2 * of_each * wide * width or None
