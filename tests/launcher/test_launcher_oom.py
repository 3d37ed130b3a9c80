"""The kernel's OOM killer, met in a small memory group of its own; needs root."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import alive, wait_for

ROOT = Path("/sys/fs/cgroup")
EATER = "x = []\nprint('up', flush=True)\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"


@pytest.fixture
def group() -> Iterator[Path]:
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    first = "memory" in own
    above = ROOT / "memory" / own["memory"].lstrip("/") if first else ROOT / own.get("", "").lstrip("/")
    made = above / f"vigil-launcher-test-{os.getpid()}"
    try:
        made.mkdir()
        (made / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(60 << 20))
    except OSError:
        if made.exists():
            made.rmdir()
        pytest.skip("no memory group can be made here")
    yield made
    wait_for(lambda: not (made / "cgroup.procs").read_text().split(), "the end of the group's processes")
    made.rmdir()


def test_server_that_eats_its_group_was_killed_for_memory(host: Any, group: Path) -> None:
    host.before = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    end = host.ended(host.run(EATER))
    assert (end["signal"], end["oom_killed"]) == (9, True)


def test_server_that_entered_the_group_itself_was_killed_for_memory(host: Any, group: Path) -> None:
    end = host.ended(
        host.launch("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", sys.executable, "-c", EATER)
    )
    assert (end["signal"], end["oom_killed"]) == (9, True)


def test_kill_after_a_neighbour_was_killed_for_memory_is_a_plain_kill(host: Any, group: Path) -> None:
    host.before = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    started = host.launch("sh", "-c", f'{sys.executable} -c "{EATER}"; echo died; sleep 60')
    host.wait_log(started, "died")
    os.kill(started["life"]["main"]["pid"], signal.SIGKILL)
    end = host.ended(started)
    assert (end["signal"], end["oom_killed"]) == (9, False)


def test_launcher_is_not_the_victim(host: Any, group: Path) -> None:
    host.before = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    started = host.launch("sh", "-c", f'{sys.executable} -c "{EATER}"; exit $?')
    end = host.ended(started)
    assert (end["code"], end["oom_killed"]) == (137, False)
    assert not alive(started["life"]["main"]["pid"])


def test_kill_seen_without_the_kernels_log_is_told_by_the_group(host: Any, group: Path) -> None:
    """As in a container: /dev/kmsg cannot be read, or names pids of another namespace."""
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        pytest.skip("no mount namespace can be made here")
    hidden = f'mount --bind /etc/hostname /dev/kmsg; echo $$ > {group}/cgroup.procs; exec "$@"'
    host.before = ["unshare", "-m", "sh", "-c", hidden, "sh"]
    end = host.ended(host.run(EATER))
    assert (end["signal"], end["oom_killed"]) == (9, True)
