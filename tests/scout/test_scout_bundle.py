"""The scout as it is sent to a host: as text to any Python from 3.9 on."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from preflight.lists import write_safetensors
from scout.folders_of import served
from vigil.hosts.bundle import LOADER, program


def sent(question: dict[str, Any], python: str, home: Path) -> dict[str, Any]:
    text = program("scout", "desk", json.dumps(question))
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([python, "-c", LOADER], input=text, capture_output=True, check=True, env=env, timeout=60)
    assert done.stderr == b""
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])["ok"]
    return found


@pytest.mark.parametrize("version", ["3.9.18", "3.10.13", "3.12.1", "3.13.0"])
def test_the_scout_looks_at_a_model_with_every_python_of_a_host(tmp_path: Path, version: str) -> None:
    python = Path.home() / ".pyenv" / "versions" / version / "bin" / "python3"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text('{"model_type": "llama", "deep": ' + "[" * 2000 + "]" * 2000 + "}")
    write_safetensors(tmp_path / "m" / "model.safetensors", {"a": "BF16 4x4"})
    question = {"engine": "vllm", "words": ["vllm", "serve", "m"], "cwd": str(tmp_path), "parts": ["models"]}
    found = sent({**question, "models": [{"what": "model", "given": "m"}]}, str(python), tmp_path)
    assert found["troubles"] == []
    assert found["models"][0]["files"][0]["tensors"] == 1
    assert found["models"][0]["config"] is None


def test_a_warm_look_at_64_shards_leaves_none_unread(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    tensors = {f"model.layers.{layer}.mlp.experts.{one}.weight": "BF16 4x4" for layer in range(2) for one in range(150)}
    names = [f"model-{one:05}-of-00064.safetensors" for one in range(1, 65)]
    for name in names:
        write_safetensors(tmp_path / "m" / name, tensors)
    places = {f"{name}.{tensor}": name for name in names for tensor in tensors}
    (tmp_path / "m" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    served(tmp_path / "m", deep=True)
    seen = served(tmp_path / "m")
    assert (seen["unread"], len(seen["files"])) == (0, 64)
