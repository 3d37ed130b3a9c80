"""The generator of the docs, loaded as the script that it is."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from docs.pages import DOCS, load


@pytest.fixture(scope="session")
def generate() -> Iterator[ModuleType]:
    before = list(sys.path)
    yield load(DOCS / "generate.py")
    sys.path[:] = before
