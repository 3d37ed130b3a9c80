"""Where results come from: our version, the machine, the server's version and the settings that it says are in force."""

import platform
import time
from typing import Any

import msgspec

from vigil import __version__
from vigil.bench.answered import shown
from vigil.bench.client import Client
from vigil.bench.target import Target
from vigil.survey import machine

# What a server tells of itself, and the names of it that say how fast it may be. Only these are kept: SGLang's page holds its
# API key. vLLM tells no more than its version.
PAGES: dict[str, tuple[str, ...]] = {
    "vllm": ("/version",),
    "sglang": ("/server_info", "/get_server_info"),
    "llamacpp": ("/props",),
    "generic": (),
}
KEPT = frozenset({
    "version", "max_running_requests", "max_total_num_tokens", "max_total_tokens", "max_req_input_len", "mem_fraction_static",
    "chunked_prefill_size", "cuda_graph_max_bs", "disable_cuda_graph", "disable_overlap_schedule", "disable_radix_cache",
    "schedule_policy", "schedule_conservativeness", "attention_backend", "sampling_backend", "dtype", "quantization",
    "kv_cache_dtype", "page_size", "tp_size", "dp_size", "pp_size", "ep_size", "context_length", "speculative_algorithm",
    "speculative_draft_model_path", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
    "speculative_adaptive", "random_seed", "total_slots", "build_info", "n_ctx", "model_path",
})  # fmt: skip
_OK = 200


async def server_facts(client: Client, target: Target) -> dict[str, Any]:
    """Return what the server says of its version and settings; {} where it says nothing."""
    for path in PAGES.get(target.engine, ()):
        status, body = await client.get(path)
        if status != _OK:
            continue
        try:
            page = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(page, dict):
            inner = page.get("default_generation_settings")
            return kept({**(inner if isinstance(inner, dict) else {}), **page})
    return {}


def kept(page: dict[str, Any]) -> dict[str, Any]:
    """Return what may be kept of a page: known names with plain values."""
    plain = {
        name: value for name, value in page.items() if name in KEPT and isinstance(value, str | int | float | bool)
    }
    return {name: shown(value) if isinstance(value, str) else value for name, value in sorted(plain.items())}


def here() -> dict[str, Any]:
    """Return what is known of the machine that measures, with the GPUs that it has."""
    basics = machine.basics()
    gpus = [{name: one.get(name) for name in ("name", "memory_total_bytes") if name in one} for one in machine.gpus()]
    return {
        "vigil": __version__,
        "python": platform.python_version(),
        "kernel": basics.get("kernel"),
        "cpus": basics.get("cpus"),
        "memory_bytes": basics.get("memory_total_bytes"),
        "driver": basics.get("driver"),
        "gpus": gpus,
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
    }
