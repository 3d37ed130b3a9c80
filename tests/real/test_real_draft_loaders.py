"""The engines' own loaders still do with the toy drafts what `tests/drafts/loaders.json` says that they did."""

import json
import subprocess

import pytest
from real_runs import ENGINES, ROOT

SCRIPT = ROOT / "tests" / "drafts" / "loaders.py"
KEPT = json.loads(SCRIPT.with_name("loaders.json").read_text())


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_loader_does_what_was_kept_of_it(engine: str) -> None:
    python = ENGINES / engine / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {engine} here: make engines installs it")
    done = subprocess.run([python, SCRIPT, engine], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == KEPT[engine]
