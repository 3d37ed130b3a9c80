"""A nursery for each test; its children are gone afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from children import Nursery


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    children = Nursery(tmp_path)
    yield children
    children.close()
