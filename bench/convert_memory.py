"""How much memory `vigil draft convert` takes: drafts of 0.6, 1 and 10 GB, under a limit of address space.

    .venv/bin/python bench/convert_memory.py [--gb 0.6,1,10] [--limit-mb 512]

Prints a table for docs/drafts.md. The source is sparse (noughts that take no disk), the result is not: so much must be free in
--folder. Memory is the highest resident size that the kernel counted for the command (wait4), all of Python included.
"""

import argparse
import json
import os
import resource
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HIDDEN, HEADS, KEYS, EACH, WORDS = 4096, 32, 8, 128, 32000
INSIDE = 2 * HIDDEN
MB = 1_000_000
WAYS = (("vllm", False), ("sglang", True), ("speculators", True))


class Measured(NamedTuple):
    """One conversion. `code`: of its exit."""

    code: int
    seconds: float
    peak_bytes: int


def shapes(total_bytes: int) -> dict[str, tuple[int, ...]]:
    """Return the tensors of a draft of about so many bytes in bf16: the MLP is as wide as that needs."""
    found: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (WORDS, HIDDEN),
        "lm_head.weight": (WORDS, HIDDEN),
        "fc.weight": (HIDDEN, 3 * HIDDEN),
        "norm.weight": (HIDDEN,),
        "midlayer.self_attn.q_proj.weight": (HEADS * EACH, INSIDE),
        "midlayer.self_attn.k_proj.weight": (KEYS * EACH, INSIDE),
        "midlayer.self_attn.v_proj.weight": (KEYS * EACH, INSIDE),
        "midlayer.self_attn.o_proj.weight": (HIDDEN, HEADS * EACH),
        **{
            f"midlayer.{one}.weight": (HIDDEN,)
            for one in ("input_layernorm", "hidden_norm", "post_attention_layernorm")
        },
    }
    rest = sum(2 * count(shape) for shape in found.values())
    inner = max(64, (total_bytes - rest) // (2 * 3 * HIDDEN))
    return {
        **found,
        "midlayer.mlp.gate_proj.weight": (inner, HIDDEN),
        "midlayer.mlp.up_proj.weight": (inner, HIDDEN),
        "midlayer.mlp.down_proj.weight": (HIDDEN, inner),
    }


def count(shape: tuple[int, ...]) -> int:
    product = 1
    for one in shape:
        product *= one
    return product


def write_sparse(path: Path, tensors: dict[str, tuple[int, ...]]) -> int:
    """Write a safetensors file of noughts that takes no disk; return its size."""
    header, end = {}, 0
    for name, shape in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + 2 * count(shape)]}
        end += 2 * count(shape)
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return 8 + len(text) + end


def make(home: Path, total_bytes: int) -> int:
    """Write a draft and its target; return the size of the draft's file."""
    tensors = shapes(total_bytes)
    shape = {
        "model_type": "llama", "hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KEYS,
        "head_dim": EACH, "hidden_act": "silu", "vocab_size": WORDS, "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip
    inner = tensors["midlayer.mlp.gate_proj.weight"][0]
    draft = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "intermediate_size": inner}
    target = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32, "intermediate_size": 11008}
    for name, config in (("draft", {**shape, **draft, "draft_vocab_size": WORDS}), ("target", {**shape, **target})):
        (home / name).mkdir()
        (home / name / "config.json").write_text(json.dumps(config))
    both = {
        f"model.{name}" if name.startswith("embed") else name: tensors[name]
        for name in ("embed_tokens.weight", "lm_head.weight")
    }
    write_sparse(home / "target" / "model.safetensors", both)
    return write_sparse(home / "draft" / "model.safetensors", tensors)


def convert(home: Path, to: str, *, target: bool, limit_bytes: int) -> Measured:
    """Convert under the limit, and take the result away."""
    words = [sys.executable, "-m", "vigil", "draft", "convert", str(home / "draft"), str(home / "result"), "--to", to]
    words += ["--target", str(home / "target")] if target else []
    began = time.monotonic()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(words[0], words)  # noqa: S606 - this command, measured by wait4
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - began
    shutil.rmtree(home / "result", ignore_errors=True)
    return Measured(os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss << 10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", default="0.6,1,10", help="sizes of drafts")
    parser.add_argument("--limit-mb", type=int, default=512, help="of address space")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    asked = parser.parse_args()
    print(f"Address space limited to {asked.limit_mb} MB.\n")
    print("| draft | to | seconds | highest memory |\n| --- | --- | --- | --- |")
    bad = 0
    for size in map(float, asked.gb.split(",")):
        with tempfile.TemporaryDirectory(dir=asked.folder, prefix="convert-memory-") as folder:
            size_bytes = make(Path(folder), int(size * 1e9))
            for to, target in WAYS:
                found = convert(Path(folder), to, target=target, limit_bytes=asked.limit_mb * MB)
                bad += found.code != 0
                name = to + (" with --target" if target else "") + (f" (exit code {found.code})" if found.code else "")
                cells = (f"{size_bytes / 1e9:.2f} GB", name, f"{found.seconds:.1f}", f"{found.peak_bytes / MB:.0f} MB")
                print(f"| {' | '.join(cells)} |", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
