"""The toy target and its data, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from toy import make_data, make_target


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `target`, `data` (96 documents) and `held-out` (32)."""
    torch.set_num_threads(1)
    home = tmp_path_factory.mktemp("toy")
    model = make_target(home / "target")
    make_data(model, home / "data", 96, 1)
    make_data(model, home / "held-out", 32, 2)
    return home
