"""Each test gets the real command line with a state folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from vigil_cli import Vigil


@pytest.fixture
def vigil(tmp_path: Path) -> Iterator[Vigil]:
    ours = Vigil(tmp_path)
    yield ours
    ours.close()
