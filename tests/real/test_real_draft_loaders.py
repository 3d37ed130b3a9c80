"""The engines' own loaders still do with the toy drafts what `tests/drafts/loaders.json` says, and take what convert writes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_runs import ENGINES, ROOT

SCRIPT = ROOT / "tests" / "drafts" / "loaders.py"
KEPT = json.loads(SCRIPT.with_name("loaders.json").read_text())
CONVERTED = ("original", "specforge", "speculators", "two-layers", "four-inputs", "prefixed", "residual-unsaid")
LISTED = {"specforge": [1, 3, 6], "speculators": [1, 3, 6], "residual-unsaid": [1, 3, 6], "four-inputs": [1, 3, 5, 6]}


def loaded(engine: str, *words: str) -> Any:
    """Return what an engine's loader did."""
    python = ENGINES / engine / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {engine} here: make engines installs it")
    done = subprocess.run([python, SCRIPT, engine, *words], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_loader_does_what_was_kept_of_it(engine: str) -> None:
    assert loaded(engine) == KEPT[engine]


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_loader_takes_all_of_what_was_converted_for_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = [sys.executable, str(SCRIPT.with_name("make.py")), str(tmp_path / "toys"), *CONVERTED]
    subprocess.run(script, check=True, timeout=60)
    out = tmp_path / "out"
    subprocess.run([sys.executable, str(SCRIPT.with_name("make.py")), str(out), *CONVERTED[:1]], check=True, timeout=60)
    for name in CONVERTED:
        words = ["draft", "convert", str(tmp_path / "toys" / name), str(out / f"{name}-here"), "--to", engine]
        subprocess.run([sys.executable, "-m", "vigil", *words], check=True, capture_output=True, timeout=60)

    found = loaded(engine, str(out))["cases"]

    for name in CONVERTED:
        told = found[f"{name}-here"]
        asked = told.get("boundaries") or told["boundaries_new_runner"] or [2, 4, 5]
        assert (asked, told["mapped"], told["residual"]) == (LISTED.get(name, [2, 4, 5]), True, "before hidden_norm"), (
            name
        )
        assert set(told.get("dropped", ())) <= {"t2d"}, name
        idle = "hidden_norm" if engine == "vllm" else "input_layernorm"
        assert set(told["untouched"]) <= {"model.embed_tokens.weight", f"model.layers.1.{idle}.weight"}, name
