"""The machine that a start found, read from files as other machines have them."""

from pathlib import Path
from typing import Any

import pytest

from vigil.survey import machine

GIB = 1 << 30
DRIVERS = {
    "open": (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@)  \nGCC\n",
        "580.159.04",
    ),
    "closed": (
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
        "550.54.15",
    ),
    "nonsense": ("\0\n" * 10, None),
    "empty": ("", None),
}
INFORMATION = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t GPU-7439484f-4318\nVideo BIOS: \t 96.00\n"


@pytest.mark.parametrize("kind", DRIVERS)
def test_driver_is_read_from_the_kernels_own_word(tmp_path: Path, kind: str) -> None:
    text, version = DRIVERS[kind]
    (tmp_path / "version").write_text(text)
    assert machine.driver(str(tmp_path)) == version
    assert machine.driver(str(tmp_path / "nowhere")) is None


def test_gpus_without_the_library_are_those_of_proc(tmp_path: Path) -> None:
    (tmp_path / "gpus" / "0000:00:06.0").mkdir(parents=True)
    (tmp_path / "gpus" / "0000:00:06.0" / "information").write_text(INFORMATION)
    (tmp_path / "gpus" / "0000:00:07.0").mkdir()
    found = [(one["name"], one["uuid"], one["free_bytes"]) for one in machine.gpus_of_proc(str(tmp_path))]
    assert found == [("NVIDIA H200", "GPU-7439484f-4318", None), ("", "", None)]


class Driver:
    """What is asked of NVIDIA's library, of one GPU; a call that it does not have is not there."""

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, *_: Any) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetMemoryInfo(self, _: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.total, memory._obj.free = 140 * GIB, 3 * GIB
        return 0

    def nvmlDeviceGetName(self, _: Any, text: Any, *__: Any) -> int:  # noqa: N802
        text.value = b"NVIDIA H200"
        return 0


def test_gpus_are_told_with_what_is_free_of_them() -> None:
    assert machine.gpus(Driver()) == [
        {"name": "NVIDIA H200", "uuid": "", "total_bytes": 140 * GIB, "free_bytes": 3 * GIB}
    ]
    assert machine.gpus("libno-such-thing.so.1", "/nowhere") == []


def test_memory_limit_is_the_lowest_of_the_groups_above(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text(f"{4 * GIB}\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    assert machine.memory_limit(str(tmp_path), b"0::/a/b\n") == 4 * GIB
    assert machine.memory_limit(str(tmp_path), b"0::/c\n") is None
    assert machine.memory_limit(str(tmp_path), b"0::/../../..\nnonsense\n") is None


def test_memory_limit_of_the_first_version_of_groups(tmp_path: Path) -> None:
    (tmp_path / "memory" / "a").mkdir(parents=True)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "memory" / "a" / "memory.limit_in_bytes").write_text(f"{2 * GIB}\n")
    assert machine.memory_limit(str(tmp_path), b"4:cpu:/a\n5:memory:/a\n") == 2 * GIB
    assert machine.memory_limit(str(tmp_path), b"5:memory:/\n") is None


def test_disks_are_named_once_each_by_the_first_place_on_them(tmp_path: Path) -> None:
    found = machine.disks([str(tmp_path), str(tmp_path / "not" / "made" / "yet"), "/dev/shm", "relative"])
    assert next(iter(found)) == str(tmp_path)
    assert str(tmp_path / "not" / "made" / "yet") not in found
    assert all(0 <= one["free_bytes"] <= one["total_bytes"] for one in found.values())
