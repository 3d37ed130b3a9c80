"""Run a command in a memory cgroup of its own, so that the kernel's OOM killer can be met without harm. Needs root.

Usage: in_cgroup.py --limit 100m -- COMMAND...    (cgroup v1 and v2; the group is removed by whoever finds it empty)
"""

import contextlib
import os
import pathlib
import sys

ROOT = pathlib.Path("/sys/fs/cgroup")
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def make_group(limit_bytes: int) -> pathlib.Path:
    """Make a group below our own and return its folder."""
    own = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
    v1 = "memory" in own
    above = ROOT / "memory" / own["memory"].lstrip("/") if v1 else ROOT / own[""].lstrip("/")
    remove_empty(above)
    group = above / f"vigil-fake-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(limit_bytes))
    swap = group / ("memory.memsw.limit_in_bytes" if v1 else "memory.swap.max")
    if swap.exists():
        swap.write_text(str(limit_bytes) if v1 else "0")
    return group


def remove_empty(above: pathlib.Path) -> None:
    """Remove the groups of earlier runs whose makers are gone: one that is just being made has nobody in it either."""
    for group in above.glob("vigil-fake-*"):
        if not pathlib.Path(f"/proc/{group.name.rpartition('-')[2]}").exists():
            with contextlib.suppress(OSError):  # somebody else was first, or a child of the maker lives
                group.rmdir()


def main() -> None:
    """Enter the group and become the command."""
    split = sys.argv.index("--")
    text = sys.argv[sys.argv.index("--limit") + 1]
    group = make_group(int(text[:-1]) * UNITS[text[-1].lower()])
    (group / "cgroup.procs").write_text(str(os.getpid()))
    command = sys.argv[split + 1 :]
    os.execvp(command[0], command)  # noqa: S606 - that is the point


if __name__ == "__main__":
    main()
