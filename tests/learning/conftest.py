"""The toy target and its data, made once. Where torch is missing (`make test`), nothing here is collected: `make test-drafts` runs it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `target`, `data` (96 documents) and `held-out` (32)."""
    import torch  # noqa: PLC0415 - this file is read without it, too
    from toy import make_data, make_target  # noqa: PLC0415 - it brings torch

    torch.set_num_threads(1)
    home = tmp_path_factory.mktemp("toy")
    model = make_target(home / "target")
    make_data(model, home / "data", 96, 1)
    make_data(model, home / "held-out", 32, 2)
    return home
