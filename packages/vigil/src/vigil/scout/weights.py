"""See how large each model of the command is, and the few numbers of its config.json that its cache's size hangs on.

Sizes are those of the files that an engine would load: no file is opened but config.json.
"""

import json
import os
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from ..survey.digest import read_small, tail
from ..survey.models import find, parts

if TYPE_CHECKING:
    from .desk import Question

CONFIG_BYTES = 4 << 20
MOST_ENTRIES = 20000
MOST_MODELS = 8
LARGEST = 1 << 50
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
NUMBERS = (
    "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "kv_lora_rank",
    "qk_rope_head_dim", "max_position_embeddings", "vocab_size",
)  # fmt: skip
# A model that has one of these keeps another cache for some of its layers: what it needs is not told by the numbers above.
_OTHER_CACHES = (
    "sliding_window", "layer_types", "attention_chunk_size", "mamba_d_state", "ssm_state_size", "linear_num_key_heads",
    "hybrid_override_pattern", "layers_block_type", "full_attention_interval", "attn_type_list", "compress_ratios",
)  # fmt: skip
INDEX = "model.safetensors.index.json"
END_BYTES = 4096
_TOTAL = re.compile(rb'"total_size"\s*:\s*(\d{1,15})\b')


def see(question: "Question") -> List[Dict[str, Any]]:
    """Return the size of each model, as `SizeSeen`s."""
    found = []
    for one in question.models[:MOST_MODELS]:
        given = str(one.get("given") or "")
        path = find(given, one.get("revision"), question.place) if given else None
        told = {"what": str(one.get("what") or "model"), "given": given[:500], "path": path}
        found.append({**told, **_look(path)} if path else told)
    return found


def _look(path: str) -> Dict[str, Any]:
    config = _config(path) if os.path.isdir(path) else {}
    inner = config.get("text_config")
    text = {**config, **inner} if isinstance(inner, dict) else config
    numbers = {name: text[name] for name in NUMBERS if _is_size(text.get(name))}
    quantised = config.get("quantization_config")
    method = quantised.get("quant_method", "?") if isinstance(quantised, dict) else ""
    return {
        "bytes": size_of(path),
        "numbers": numbers,
        "dtype": str(text.get("dtype") or text.get("torch_dtype") or config.get("torch_dtype") or "")[:40],
        "quantised": str(method)[:40],
        "one_cache": bool(config) and not any(text.get(name) for name in _OTHER_CACHES),
    }


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST


def _config(folder: str) -> Dict[str, Any]:
    try:
        value = json.loads(read_small(os.path.join(folder, "config.json"), CONFIG_BYTES) or b"")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def size_of(path: str) -> Optional[int]:
    """Return the bytes of the weights at a path, or None where there are none.

    Of a folder the safetensors files count, else those of torch: engines load one kind. `consolidated*` is a second copy, as
    Mistral ships it.
    """
    if os.path.isfile(path):
        return _sum(parts(path))
    sizes = _listing(path)
    tensors = [one for one in sizes if one[0].endswith(".safetensors")]
    plain = [one for one in tensors if not one[0].startswith("consolidated")]
    told = _told(path) if len(plain) > 1 else None
    if told is not None and told <= sum(size for _, size in plain):
        return told
    for chosen in (plain, tensors, [one for one in sizes if not one[0].endswith(".safetensors")]):
        if chosen:
            return sum(size for _, size in chosen)
    return None


def _told(folder: str) -> Optional[int]:
    """Return the bytes that the index of the shards tells: there may be other files that nobody loads."""
    path = os.path.join(folder, INDEX)
    ends = (read_small(path, END_BYTES) or b"") + tail(path, END_BYTES)
    found = _TOTAL.search(ends)
    return int(found.group(1)) if found is not None else None


def _listing(folder: str) -> List[Tuple[str, int]]:
    try:
        with os.scandir(folder) as entries:
            paths = [one.path for one in islice(entries, MOST_ENTRIES) if one.name.endswith(WEIGHTS)]
    except OSError:
        return []
    return [(os.path.basename(path), _size(path)) for path in paths]


def _sum(paths: List[str]) -> Optional[int]:
    return sum(map(_size, paths)) or None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
