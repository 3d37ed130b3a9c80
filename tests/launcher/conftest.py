"""A desk for each test; what it started is gone afterwards."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from desks import Host


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    desk = Host(tmp_path)
    yield desk
    for pid in desk.processes():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    desk.nothing_left()
