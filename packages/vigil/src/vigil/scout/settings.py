"""See the settings that the environment brings: proxies, GPU numbers, NCCL's variables, and what on this host they speak of.

Values are shown without secrets. A token of Hugging Face is only said to be there.
"""

import os
from typing import Any, Dict, List, Mapping

from ..observer.redact import Redactor
from .hub import has_token

INTERFACES = "/sys/class/net"
ADAPTERS = "/sys/class/infiniband"
MOST_VARIABLES = 100
MOST_NAMES = 256
VALUE_CHARS = 500
# Read by NCCL, gloo, CUDA, HTTP clients, the hub's client, and the engines' own checks of memory and of where models come from.
_KEPT = frozenset({
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "GLOO_SOCKET_IFNAME", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy",
    "NO_PROXY", "no_proxy", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT", "HF_HUB_DISABLE_IMPLICIT_TOKEN",
    "VLLM_USE_MODELSCOPE", "SGLANG_USE_MODELSCOPE", "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
    "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK", "LLAMA_ARG_SPEC_TYPE", "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
})  # fmt: skip


def see(env: Mapping[str, str]) -> Dict[str, Any]:
    """Return the variables, whether a token is there, and the interfaces and InfiniBand adapters of this host."""
    redactor = Redactor()
    names = sorted(name for name in env if name in _KEPT or name.startswith("NCCL_"))[:MOST_VARIABLES]
    return {
        "variables": {name: redactor.clean(env[name])[:VALUE_CHARS] for name in names},
        "token": has_token(env),
        "interfaces": names_in(INTERFACES),
        "adapters": names_in(ADAPTERS),
    }


def names_in(folder: str) -> List[str]:
    """Return the names in a folder of /sys; none where it is not there."""
    try:
        return sorted(os.listdir(folder))[:MOST_NAMES]
    except OSError:
        return []
